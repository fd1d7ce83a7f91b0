# needs: go
# prints: hello from go
# prints: vetted
mkdir m && cd m
cat >go.mod <<'END'
module example.org/m

go 1.21
END
# println needs no package but runtime and what that imports: fmt's would take four times as long to compile.
cat >m.go <<'END'
package main

func main() { println("hello from go") }
END
export GOPROXY=off GOTOOLCHAIN=local
go build -v -o out . && ./out
go vet ./... && echo vetted
