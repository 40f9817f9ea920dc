"""`python -m exitcode_reference_controller`: see `command_line`."""

import sys

from exitcode_reference_controller.command_line import main

if __name__ == "__main__":
    sys.exit(main())
