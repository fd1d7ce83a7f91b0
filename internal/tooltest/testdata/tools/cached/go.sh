# needs: go
# prints: hello from go
# prints: ok  	example.org/m
# prints: vetted
mkdir m && cd m
cat >go.mod <<'END'
module example.org/m

go 1.21
END
cat >m.go <<'END'
package main

import "fmt"

func hello() string { return "hello from go" }

func main() { fmt.Println(hello()) }
END
cat >m_test.go <<'END'
package main

import "testing"

func TestHello(t *testing.T) {
	if hello() != "hello from go" {
		t.Fatal(hello())
	}
}
END
export GOPROXY=off GOTOOLCHAIN=local
go build -v -o out . && ./out
go test ./...
go vet ./... && echo vetted
