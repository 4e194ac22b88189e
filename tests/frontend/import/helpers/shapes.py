WIDTH = 8
from tiles import *
