# The runner on a checkout of three kernels with given launches: one that is right, one that is not supported, one for another target.
command -v python3 > $TMP/python || { echo "no python3"; exit 77; }
mkdir -p $TMP/checkout/examples/zoo $TMP/checkout/examples/amd $TMP/given
cat > $TMP/checkout/examples/zoo/fill.py << 'END'
import torch
import tilelang
import tilelang.language as T


@tilelang.jit
def fill(M, N, threads):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), M, threads=threads) as (bx, by):
            for i in T.Parallel(64):
                A[by, bx * 64 + i] = 0

    return main


@tilelang.jit
def eager(A, B):
    N = T.const("N")
    A: T.Tensor[[N], T.float16]
    B: T.Tensor[[N], T.float16]
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i]


@T.prim_func
def odd(A: T.Tensor((4,), "float16")):
    with T.Kernel(1):
        T.no_such_operation(A)
END
cp $TMP/checkout/examples/zoo/fill.py $TMP/checkout/examples/amd/
cat > $TMP/given/kernels.csv << 'END'
id,file,factory,line,kernel,kernel_line,how,eager,params,outer,closure,tensors,pass_configs,declared_target
a,examples/zoo/fill.py,fill,6,main,8,compile,0,"{""M"":3,""N"":100,""threads"":64}",[],{},{},{},auto
b,examples/zoo/fill.py,fill,6,main,8,compile,0,"{""M"":4,""N"":100,""threads"":64}",[],{},{},{},auto
END
cat > $TMP/given/launch.csv << 'END'
id,target,threads,grid,threads_after,grid_expr,n_launches
a,sm_80,64,2x3,64,,1
b,sm_80,128,2x4,128,,1
END
printf '%s\n' '# file,kernel,values' 'examples/zoo/fill.py,eager,A:40:float16' > $TMP/params.csv
./run $TMP/checkout --given $TMP/given --params $TMP/params.csv
echo "exit code $?"
./run $TMP/checkout --only eager --quiet | head -4
