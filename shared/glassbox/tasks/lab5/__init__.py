from .printing import op_lines
from .portraying import portrait
from .watching import watch_layer
from .sharing import who_shares
from .copying import hidden_copies
TASKS=(op_lines, portrait,watch_layer,who_shares,hidden_copies)
