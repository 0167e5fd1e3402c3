package uri

import (
	"slices"
	"strings"
	"testing"
)

func readings(path string) (all []string) {
	var r Readings
	for r.Reset(path); ; {
		text, ok := r.Next()
		if !ok || r.Excessive() {
			return all
		}
		all = append(all, string(text))
	}
}

func TestEveryReadingOfAPath(t *testing.T) {
	for _, c := range []struct{ path, reading string }{
		{"/ADMIN", "/admin"},
		{"/admin;x", "/admin"},
		{"/admin;x/y", "/admin/y"},
		{"/;/admin", "/admin"},
		{"/;a=b/admin/", "/admin"},
		{"/%2Fadmin", "/admin"},
		{"/admin%2Fx", "/admin/x"},
		{"/x%2F..%2Fadmin", "/admin"},
		{"/x/..%2Fadmin", "/admin"},
		{"/x/..%5CAdmin", "/admin"},
		{"/x%5C..%5Cadmin", "/admin"},
		{"/p%5Cq/..%2Fadmin", "/admin"},          // "\" is no slash
		{"/p%5Cq/..%2Fadmin", "/p/admin"},        // it is one
		{"/a/;x/..%2Fadmin", "/admin"},           // nothing is left of ";x"
		{"/a/;x/..%2Fadmin", "/a/admin"},         // it is a segment
		{"/admin%2F..%2Fopen", "/open"},          // dot segments are resolved
		{"/admin%2F..%2Fopen", "/admin/../open"}, // they are not
		{"/x/..%252Fadmin", "/admin"},            // decoded twice
		{"/%2561dmin", "/admin"},
		{"/%252561dmin", "/admin"},
		{"/admin%3Bx", "/admin"},
		{"/x/..%3B%2Fadmin", "/admin"},
		{"/admin.", "/admin"},
		{"/admin./x", "/admin/x"},
		{"/admin%20", "/admin"},
		{"/%40me", "/@me"},
		{"/caf%C3%A9", "/caf\xc3\xa9"},
		{"/..%2F..%2Fadmin", "/admin"},
	} {
		if got := readings(c.path); !slices.Contains(got, c.reading) {
			t.Errorf("%s is read as %q, want %q among them", c.path, got, c.reading)
		}
		if SpellingOf(c.path) == Plain {
			t.Errorf("%s is plain, and is read as %s", c.path, c.reading)
		}
	}
}

func TestPlainPathsHaveOneReading(t *testing.T) {
	for _, path := range []string{"/", "/a/b.c/d", "/a/b/", "/.well-known/x", "/~a/-_.x", "/a:b@c=d,e!f$g&h'i(j)k*l+m"} {
		if SpellingOf(path) != Plain {
			t.Errorf("%s is not plain", path)
		}
		want := path
		if want[len(want)-1] == '/' {
			want = want[:len(want)-1]
		}
		if got := readings(path); !slices.Contains(got, want) {
			t.Errorf("%s is read as %q", path, got)
		}
	}
}

func TestSpelling(t *testing.T) {
	for path, want := range map[string]Spelling{
		"/a/b.c": Plain, "/.well-known/x": Plain, "/A": Spelled, "/a%20b": Spelled, "/%20b": Spelled, "/caf%C3%A9/x": Spelled, "/%40": Spelled,
		"/a%20": Loose, "/a%20/b": Loose, "/a%20%20/b": Loose, "/a%20;x": Loose, "/a%20./b": Loose,
		"/a;x": Loose, "/a./b": Loose, "/a.": Loose, "/a%2Fb": Loose, "/a%5Cb": Loose, "/a%3Bb": Loose, "/a%2541": Loose, "/A/b;": Loose,
	} {
		if got := SpellingOf(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// The readings of a path cost no more than a bound, whatever it is made of.
func TestReadingsAreBounded(t *testing.T) {
	long := "/"
	for len(long) < 16<<10 {
		long += "a%255C;x%2F%2F..%20./"
	}
	var r Readings
	r.Reset(long)
	n := 0
	for ; !r.Excessive(); n++ {
		if _, ok := r.Next(); !ok {
			t.Fatal("all readings of a long path were made")
		}
	}
	if n > maxRead/len(long)+1 {
		t.Errorf("%d readings of %d bytes", n, len(long))
	}
	if n := len(readings("/p%5Cq;x%2F%2F..%20./%252E%252E/admin")); n < 32 || n > 4*32 {
		t.Errorf("%d readings of a path with everything", n)
	}
}

func TestReadingsAllocateNothing(t *testing.T) {
	const path = "/Some/..%2Fpath;x/%2561dmin."
	var r Readings
	if n := testing.AllocsPerRun(100, func() {
		for r.Reset(path); ; {
			if _, ok := r.Next(); !ok {
				return
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReadings holds that a path in its one form has itself among its readings, that
// readings end, and that a plain path has nothing but itself.
func FuzzReadings(f *testing.F) {
	for _, path := range []string{"/admin;x", "/;/admin", "/%2fadmin", "/x/..%2fadmin", "/ADMIN", "/p%5Cq/..%2Fa", "/x/..%252Fadmin", "/a./b%20/", "/"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		normal, err := AppendNormal(nil, path)
		if err != nil || len(normal) > 512 {
			return
		}
		all := readings(string(normal))
		if len(all) == 0 || len(all) > 4*32 {
			t.Fatalf("%q has %d readings", normal, len(all))
		}
		for _, reading := range all {
			if len(reading) > len(normal) {
				t.Fatalf("%q is read as %q, which is longer", normal, reading)
			}
			switch SpellingOf(string(normal)) {
			case Plain:
				if reading != string(normal) && reading+"/" != string(normal) {
					t.Fatalf("%q is plain and is read as %q", normal, reading)
				}
			case Spelled:
				if got, want := strings.Count(reading, "/"), strings.Count(strings.TrimSuffix(string(normal), "/"), "/"); got != want {
					t.Fatalf("%q has the same segments for all, and is read as %q", normal, reading)
				}
				if first := string(AppendFirst(nil, string(normal))); !IsFirst(string(normal), first) || IsFirst(string(normal), first+"x") || IsFirst(string(normal), first[:len(first)-1]) {
					t.Fatalf("%q: IsFirst does not say that it begins with %q", normal, first)
				}
				if first := string(AppendFirst(nil, string(normal))); reading == all[len(all)-1] && !strings.HasPrefix(reading+"/", first+"/") && first != "/" {
					t.Fatalf("%q begins with %q, and is read as %q", normal, first, reading)
				}
			}
		}
		if again := readings(string(AppendLoose(nil, string(normal)))); len(normal) > 1 && len(again) == 0 {
			t.Fatalf("%q: a reading has no readings", normal)
		}
	})
}

func BenchmarkSpelling(b *testing.B) {
	for _, path := range []string{"/", "/watch/dQw4w9WgXcQ", "/api/v1/users/12345/orders", "/static/files/assets/app.min.4f2a9c.js"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				SpellingOf(path)
			}
		})
	}
}

// TestSpellingSeesEveryByteAtEveryPlace holds that a byte is seen wherever it stands among
// those that are looked at together.
func TestSpellingSeesEveryByteAtEveryPlace(t *testing.T) {
	const long = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for at := 1; at < len(long); at++ {
		for c := range 256 {
			b := []byte(long)
			b[at] = byte(c)
			path := string(b)
			want := Plain
			switch {
			case c == '%':
				continue
			case c >= 'A' && c <= 'Z':
				want = Spelled
			case c == ';', c == '.' && at == len(long)-1:
				want = Loose
			}
			if got := SpellingOf(path); got != want {
				t.Fatalf("%q: got %v, want %v", path, got, want)
			}
		}
		for text, want := range map[string]Spelling{"%C3": Spelled, "%2F": Loose, "./": Loose, ".b": Plain} {
			if path := long[:at] + text + long[at:]; SpellingOf(path) != want {
				t.Fatalf("%q: got %v, want %v", path, SpellingOf(path), want)
			}
		}
	}
}
