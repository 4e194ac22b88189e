# What bulk copies and explicit warpgroup gemms cannot do is refused with the reason, and on targets without them once.
refuse() { $TL analyze tile_limits.tl --no-db "$@" > /dev/null 2> $TMP/err; echo "$? $*"; grep -e error -e help $TMP/err; }
refuse --kernel tile --target sm_90a --set pitch=68
refuse --kernel tile --target sm_90a --set columns=12 --set pitch=16
refuse --kernel tile --target sm_90a --set swizzle=1
refuse --kernel tile --target sm_90a --set columns=36 --set pitch=40 --set dtype=float32
refuse --kernel tile
refuse --kernel gemm --target sm_90a --set M=48
refuse --kernel gemm --target sm_90a --set K=40
refuse --kernel gemm --target sm_90a --set N=1024
refuse --kernel gemm
