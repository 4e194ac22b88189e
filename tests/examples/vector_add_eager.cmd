sh check.inc vector_add_eager --tensor A=1000:float16 --tensor B=1000:float16
