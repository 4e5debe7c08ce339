"""What a user holds: the accessor, tracked frames, columns and groups, and their verbs.

Verbs build expressions or ask the session. None touches data.
"""

from dpframe._frame import surface  # noqa: F401  # gives the classes their verbs
