# The tests of stats.sh.
cd "$(dirname "$0")/.." || exit 1
. ./stats.sh

failed=0
check() { # check NAME EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then
        echo "ok    $1"
    else
        echo "FAIL  $1: expected $2, got $3"
        failed=1
    fi
}

check "sum of three" 12 "$(sum 2 4 6)"
check "average of three" 4 "$(average 2 4 6)"
exit "$failed"
