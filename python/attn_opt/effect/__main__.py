"""python -m attn_opt.effect"""

import sys

from ._command import main

sys.exit(main())
