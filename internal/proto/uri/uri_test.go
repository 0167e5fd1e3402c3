package uri

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func normal(t testing.TB, path string) string {
	t.Helper()
	b, err := AppendNormal([]byte("before"), path)
	if err != nil {
		t.Fatalf("AppendNormal(%q): %v", path, err)
	}
	got, ok := strings.CutPrefix(string(b), "before")
	if !ok {
		t.Fatalf("AppendNormal(%q) changed what stood before: %q", path, b)
	}
	return got
}

func TestPathHasOneForm(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"/", "/"},
		{"/a", "/a"},
		{"/a/", "/a/"},
		{"/a/b.c/d", "/a/b.c/d"},
		// dot segments, also encoded
		{"/.", "/"},
		{"/..", "/"},
		{"/./", "/"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"},
		{"/a/b/../c", "/a/c"},
		{"/a/./b", "/a/b"},
		{"/a/%2e/b", "/a/b"},
		{"/a/%2E%2e/b", "/b"},
		{"/a/.%2E/b", "/b"},
		{"/a/b/%2e%2e", "/a/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/a/..b", "/a/..b"},
		{"/a/b..", "/a/b.."},
		// above the root there is nothing
		{"/../a", "/a"},
		{"/a/../../../b", "/b"},
		{"/../../", "/"},
		// empty segments
		{"//", "/"},
		{"///a//b///", "/a/b/"},
		{"//evil.example/x", "/evil.example/x"},
		{"/a//../b", "/b"},
		// encodings
		{"/%61%2D%7e%5f", "/a-~_"},
		{"/a%2fb", "/a%2Fb"},
		{"/a%5cb", "/a%5Cb"},
		{"/a/..%2fb", "/a/..%2Fb"},
		{"/%2f%2f", "/%2F%2F"},
		{"/%252e%252e/x", "/%252e%252e/x"},
		{"/%25252F", "/%25252F"},
		{"/caf%c3%a9", "/caf%C3%A9"},
		{"/a%20b%3f%23", "/a%20b%3F%23"},
		{"/a;v=1/b;w", "/a;v=1/b;w"},
		{"/a:b@c!$&'()*+,=", "/a:b@c!$&'()*+,="},
		{"/%21%40", "/%21%40"},
		{"/a%09b%0a%0d", "/a%09b%0A%0D"},
		// characters that are encoded
		{"/a|b", "/a%7Cb"},
		{"/{id}[0]^`\"<>", "/%7Bid%7D%5B0%5D%5E%60%22%3C%3E"},
	} {
		if got := normal(t, c.path); got != c.want {
			t.Errorf("AppendNormal(%q) = %q, want %q", c.path, got, c.want)
		}
	}
}

func TestPathIsRefused(t *testing.T) {
	for _, c := range []struct {
		path string
		want Error
	}{
		{"", NoSlash},
		{"a", NoSlash},
		{"*", NoSlash},
		{"%2Fa", NoSlash},
		{"/a\\b", BadByte},
		{"/a b", BadByte},
		{"/a\x00", BadByte},
		{"/a\r\n", BadByte},
		{"/\x7f", BadByte},
		{"/é", BadByte},
		{"/a?b", BadByte},
		{"/a#b", BadByte},
		{"/%", BadEncoding},
		{"/%4", BadEncoding},
		{"/%zz", BadEncoding},
		{"/%4/", BadEncoding},
		{"/%u0041", BadEncoding},
		{"/%00", EncodedControl},
		{"/a%0b", EncodedControl},
		{"/a%0c", EncodedControl},
		{"/a%1F", EncodedControl},
		{"/a%7f", EncodedControl},
		{"/a%00b", EncodedControl},
		{"/..;/x", DotParameter},
		{"/a/.;x=1/b", DotParameter},
		{"/%2e%2e;", DotParameter},
	} {
		if b, err := AppendNormal(nil, c.path); err != c.want {
			t.Errorf("AppendNormal(%q) = %q, %v, want %v", c.path, b, err, c.want)
		}
		if Normal(c.path) {
			t.Errorf("Normal(%q) = true of a path that is refused", c.path)
		}
	}
}

func TestBelowIsByWholeSegments(t *testing.T) {
	for _, c := range []struct {
		path, prefix string
		want         bool
	}{
		{"/", "", true}, {"/x", "", true},
		{"/api", "/api", true}, {"/api/", "/api", true}, {"/api/x", "/api", true},
		{"/apix", "/api", false}, {"/ap", "/api", false}, {"/", "/api", false},
	} {
		if got := Below(c.path, c.prefix); got != c.want {
			t.Errorf("Below(%q, %q) = %v, want %v", c.path, c.prefix, got, c.want)
		}
	}
}

func pathGen() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"/", "/", "/", ".", "..", "a", "b", "%2e", "%2E", "%2f", "%5C", "%25", "%41", "%c3", "%", "%00", ";", "|", "~", "é", "\\", "é", "?"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(s []string) string { return "/" + strings.Join(s, "") })
}

// check holds what is true of every path.
func check(t interface{ Fatalf(string, ...any) }, path string) {
	b, err := AppendNormal(nil, path)
	if err != nil {
		if Normal(path) {
			t.Fatalf("Normal(%q), but it is refused: %v", path, err)
		}
		return
	}
	got := string(b)
	if Normal(path) && got != path {
		t.Fatalf("Normal(%q), but its form is %q", path, got)
	}
	if got[0] != '/' || strings.Contains(got, "//") {
		t.Fatalf("the form of %q is %q", path, got)
	}
	for segment := range strings.SplitSeq(got[1:], "/") {
		if segment == "." || segment == ".." || strings.HasPrefix(segment, "..;") {
			t.Fatalf("the form of %q has a dot segment: %q", path, got)
		}
	}
	for i := range len(got) {
		if c := got[i]; class[c]&(bad|raw) != 0 {
			t.Fatalf("the form of %q holds %q: %q", path, c, got)
		}
	}
	if again, err := AppendNormal(nil, got); err != nil || string(again) != got {
		t.Fatalf("the form of %q is %q, whose form is %q, %v", path, got, again, err)
	}
	if want := reference(path); got != want {
		t.Fatalf("the form of %q is %q, want %q", path, got, want)
	}
}

// reference is the rule written down plainly: decode, drop empty and "."
// segments, let ".." take one away.
func reference(path string) string {
	var decoded strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		encoded := c == '%'
		if encoded {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
		}
		switch {
		case class[c]&free != 0, !encoded && class[c]&raw == 0:
			decoded.WriteByte(c)
		default:
			decoded.Write(appendEncoded(nil, c))
		}
	}
	var kept []string
	segments := strings.Split(decoded.String()[1:], "/")
	for _, s := range segments {
		switch s {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
		}
	}
	out := "/" + strings.Join(kept, "/")
	if last := segments[len(segments)-1]; out != "/" && (last == "" || last == "." || last == "..") {
		out += "/"
	}
	return out
}

func TestEveryPathKeepsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { check(t, pathGen().Draw(t, "path")) })
}

func FuzzAppendNormal(f *testing.F) {
	for _, s := range []string{
		"/", "/a/b", "/../a", "/a/%2e%2E/b", "//a//", "/a%2fb%5c", "/%252e", "/..;/", "/a|b",
		"/.well-known/acme-challenge/x", "/%", "/%00", "/a/./.././b/..", "/é", "/..%2f..%2f", "/%2e%2e%2f",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) { check(t, path) })
}

func TestNothingIsAllocated(t *testing.T) {
	buf := make([]byte, 0, 256)
	n := testing.AllocsPerRun(100, func() {
		if Normal("/a/%2e/b") {
			t.Error("Normal of an encoding")
		}
		buf, _ = AppendNormal(buf[:0], "/a/%2e%2e/b//c%2f")
		if !Normal("/api/v1/users/42") {
			t.Error("not Normal")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkNormal(b *testing.B) {
	for b.Loop() {
		if !Normal("/api/v1/users/42/orders.json") {
			b.Fatal("not normal")
		}
	}
}

func BenchmarkAppendNormal(b *testing.B) {
	buf := make([]byte, 0, 256)
	for b.Loop() {
		buf, _ = AppendNormal(buf[:0], "/api/v1/%75sers/../42/a%2fb")
	}
}
