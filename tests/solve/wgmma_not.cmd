# Why a gemm keeps mma.sync on a target that has wgmma, and that other targets do not speak of it.
why() {
	echo "== $*"
	target=$1 file=$2
	shift 2
	$TL emit $file --target $target $(for word in "$@"; do echo "--set $word"; done) --stage=solution | grep 'accumulator of'
}
why sm_90a gemm.tl threads=96 block_M=96
why sm_90a gemm.tl block_M=32
why sm_90a gemm_types.tl dtype=float32
why sm_90a gemm_types.tl dtype=int8 acc=int32 ta=True tb=True
why sm_90a gemm_types.tl b=fragment
why sm_90a gemm_types.tl K=24
why sm_90a annotate.tl layout=linear
why sm_80 gemm.tl
why sm_100 gemm.tl
# An accumulator in flight cannot be spilled: 128 registers of the 128 that a thread of 512 has are too many.
$TL emit gemm.tl --stage=solution --target sm_90a --set block_M=256 --set block_N=256 --set block_K=64 --set threads=512 --set policy=FullRow |
	grep -e "in flight" -e "mma\.m16"
