#!/bin/sh
# Every example on the card, with the instructions of sm_80 and of the card's own chip; then the gemms of odd sizes.
# An example that has no code on a target is passed over when `emit --stage=cuda` says so too.
. "$ROOT/tests/gpu/common.inc"
need_gpu

targets=sm_80
case $("$TL" doctor 2> /dev/null) in *"sm_90"*) targets="sm_80 sm_90a" ;; esac
for target in $targets; do
	for file in "$ROOT"/examples/*.tl; do
		kernel=$(basename "$file" .tl)
		"$TL" emit "$file" --stage=cuda --target "$target" > "$TMP/cuda" 2> /dev/null || continue
		# Generated integers lie outside the bins of histogram, and as offsets of groups they make groups overlap.
		case $kernel in
		gemm_dynamic) size="--size m=256 --size n=1024 --size k=128" ;;
		histogram | gemm_grouped) continue ;;
		*) size= ;;
		esac
		check "$kernel $target" "$TL" run "$file" --target "$target" --gpu --check $size
	done
	for dim in 40 72 80 96 104 112 136 192; do
		check "attention dim=$dim $target" "$TL" run "$ROOT/examples/attention.tl" --target "$target" --gpu --check --set dim=$dim
	done
	for k in 8 20 24 40 50 72 104; do
		check "gemm K=$k $target" "$TL" run "$ROOT/tests/solve/gemm.tl" --target "$target" --gpu --check --set K=$((3 * k)) --set block_K=$k
	done
done
[ "$targets" = sm_80 ] && finish

# Warpgroups along M and along N, narrow and odd tiles, every operand type and orientation.
while read -r m n k threads policy; do
	check "gemm $m x $n x $k, $threads threads, $policy" "$TL" run "$ROOT/tests/solve/gemm.tl" --target sm_90a --gpu --check \
		--set M=$m --set N=$n --set K=$((2 * k)) --set block_M=$m --set block_N=$n --set block_K=$k --set threads=$threads \
		--set policy=$policy
done <<-END
	256 128 32 256 FullRow
	128 128 32 128 Square
	128 256 32 512 FullRow
	256 16 32 512 Square
	128 24 64 128 Square
	128 48 64 256 Square
	128 48 64 128 Square
	192 192 64 256 FullCol
	256 96 64 128 FullRow
	64 320 64 128 Square
	256 256 64 512 FullRow
END
for types in "float16 float32" "float16 float16" "bfloat16 float32" "float32 float32" "int8 int32" "uint8 int32" \
	"float8_e4m3 float32" "float8_e5m2 float32"; do
	set -- $types
	# The tensor cores of sm_90 add products of 8-bit floats with about 14 bits.
	case $1 in float8*) tolerance="--tol 1e-3" ;; *) tolerance= ;; esac
	for ta in False True; do for tb in False True; do for a in shared fragment; do
		check "gemm $types ta=$ta tb=$tb a=$a" "$TL" run "$ROOT/tests/solve/gemm_types.tl" --target sm_90a --gpu --check \
			--set M=128 --set N=96 --set dtype=$1 --set acc=$2 --set ta=$ta --set tb=$tb --set a=$a $tolerance
	done; done; done
done
finish
