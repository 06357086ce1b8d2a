# Small statistics for shell scripts: source this file.

# sum NUMBER...
sum() {
    total=0
    for number in "$@"; do
        total=$((total + number))
    done
    echo "$total"
}

# average NUMBER... (rounded down)
average() {
    echo $(($(sum "$@") / ($# - 1)))
}
