import tilelang.language as T

from .shapes import WIDTH


def scaled(x, factor):
    return x * factor if factor != 1 else x


@T.macro
def store_row(A, row, value):
    for i in T.serial(WIDTH):
        A[row, i] = value
