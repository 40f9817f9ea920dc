"""A minimal training-job operator, to be read, and to be certified: it passes every requirement of the suite.

It stands alone: it shares no table and no line with the suite that judges it. Read `reconcile.py` first (what
a job needs), then `controller.py` (when to look, and how to do it safely), then `mutants` (how each rule
can be broken).
"""
