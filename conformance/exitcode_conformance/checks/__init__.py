"""The checks, one small module per requirement group. A check is pure: (history, contract) → judgement."""
