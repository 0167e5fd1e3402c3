package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPairUsesNoPathsOfTheLeader has a folder served that the leader's API was sent. The follower
// does not send its files until it has the file that allows that; everything else works there.
func TestPairUsesNoPathsOfTheLeader(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.a.is("leader", true)
	p.b.is("follower", true)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "x.txt"), []byte("from a file"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.a.manager().must(200, "PATCH", "/proxies/shop", fmt.Sprintf(`{"routes": [{"files": {"root": %q}}]}`, root), "*")
	file := func(one *twin) string {
		text, err := one.get("shop.example.com", "/x.txt")
		if err != nil {
			return err.Error()
		}
		return text
	}
	p.eventually("a sends the file", func() bool { return file(p.a) == "from a file" })
	p.eventually("b refuses to", func() bool { return strings.HasPrefix(file(p.b), "503") })
	p.must(p.a, 1)
	p.serves(p.b, 1)
	if got := file(p.b); !strings.HasPrefix(got, "503") {
		t.Errorf("after another change, b sends %q", got)
	}
	allow := filepath.Join(p.b.state(), "allow-host-fields")
	p.eventually("a lists the problem of b", func() bool {
		for _, n := range p.nodes(p.a.machine) {
			if text := fmt.Sprint(n["problems"]); n["name"] == "b" && strings.Contains(text, "proxies.shop.routes[0].files.root") && strings.Contains(text, allow) {
				return true
			}
		}
		return false
	})
	if issues := fmt.Sprint(p.b.manager().must(200, "GET", "/proxies/shop", "", "").body["issues"]); !strings.Contains(issues, allow) {
		t.Errorf("the issues of the proxy on b: %s", issues)
	}
	p.b.up.Store(false)
	p.b.stop()
	p.b.again()
	if got := file(p.b); !strings.HasPrefix(got, "503") {
		t.Errorf("after a start, b sends %q", got)
	}
	if err := os.WriteFile(allow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.eventually("b sends the file", func() bool { return file(p.b) == "from a file" })
	if err := os.Remove(allow); err != nil {
		t.Fatal(err)
	}
	p.eventually("b refuses again", func() bool { return strings.HasPrefix(file(p.b), "503") })
}
