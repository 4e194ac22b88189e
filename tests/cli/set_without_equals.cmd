$TL analyze gemm.tl --set M --tensor =3
