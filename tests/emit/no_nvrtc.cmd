# An empty toolkit folder is no help; neither is a library that is none.
mkdir -p $TMP/toolkit/lib64 && echo broken > $TMP/toolkit/lib64/libnvrtc.so
export XDG_CACHE_HOME=$TMP
$TL doctor --cuda-path $TMP/toolkit --json > $TMP/doctor.json || exit 1
grep -c "$TMP/toolkit/lib64/libnvrtc.so" $TMP/doctor.json
