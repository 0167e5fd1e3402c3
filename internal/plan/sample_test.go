//go:build !race

// The race detector would find nothing here, and build everything twice more.

package plan

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestARoomIsOneFolderOneFieldOneLine adds a feature to a copy of the module and
// counts what that takes: a folder, a field of config.Features and a line of the table
// of rooms, with an import for each. The room reads a file, which takes nothing more.
// Then the copy has to be as good as the module: its settings are in the schema, in the
// reference and on the command line, the room acts on requests, and the rules of the
// house hold.
func TestARoomIsOneFolderOneFieldOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a copy of the module")
	}
	t.Parallel()
	root := copyModule(t)
	added := addSample(t, root)
	if want := []string{"config.go", "greeting.go", "greeting_test.go", "guide.md"}; !slices.Equal(added, want) {
		t.Errorf("the room has %q, want %q", added, want)
	}
	line := "\t\"headgate/internal/feature/greeting\"\n"
	changed := map[string]int{
		"internal/config/features.go": insert(t, root, "internal/config/features.go",
			line, "\t\"headgate/internal/feature/headers\"\n",
			"\t// Greeting greets servers and clients.\n\tGreeting *greeting.Config `json:\"greeting,omitempty\"`\n", "\t// ClientIP configures"),
		"internal/plan/rooms.go": insert(t, root, "internal/plan/rooms.go",
			line, "\t\"headgate/internal/feature/headers\"\n",
			"\t\tfeature(\"greeting\", memoized, func(f *config.Features) *greeting.Config { return f.Greeting }, greeting.Compile),\n", "\t\t{name: \"sticky_cookie\""),
	}
	if diff := cmp.Diff(map[string]int{"internal/config/features.go": 3, "internal/plan/rooms.go": 2}, changed); diff != "" {
		t.Errorf("lines in other files (-want +got):\n%s", diff)
	}

	run(t, root, "go", "run", "./internal/config/gen", "-root", ".")
	copyFile(t, filepath.Join("testdata", "sample", "greeted_test.go"), filepath.Join(root, "internal", "plan", "greeted_test.go"))
	// The sample alone is vetted: go test would vet all that the packages import again.
	run(t, root, "go", "vet", "./internal/feature/greeting")
	run(t, root, "go", "test", "-vet=off", "-count=1", "-run", "TestGreet|TestHouse|TestEveryFeature|TestArchitecture", "./internal/feature/greeting", "./internal/plan", "./internal/lint")
	binary := filepath.Join(t.TempDir(), "headgate.exe")
	run(t, root, "go", "build", "-o", binary, "./cmd/headgate")
	if text := run(t, root, binary, "schema"); !strings.Contains(text, `"greeting"`) {
		t.Error("the schema does not know the settings")
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "configuration.md"))
	if err != nil || !strings.Contains(string(reference), "file that holds the greeting") {
		t.Errorf("the reference does not tell of the settings: %v", err)
	}
	explains(t, binary)
}

// explains holds that a binary explains a route with the sample room.
func explains(t *testing.T, binary string) {
	t.Helper()
	dir := t.TempDir()
	text := "version: 1\nports: {web: {address: \"127.0.0.1:8080\", protocol: http}}\nproxies: {a: {greeting: {file: greeting.txt}, routes: [{servers: [{url: \"http://127.0.0.1:1\"}]}]}}\n"
	for name, text := range map[string]string{"headgate.yaml": text, "greeting.txt": "hello\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := run(t, dir, binary, "explain", "--config", filepath.Join(dir, "headgate.yaml"), "GET", "http://a.example:8080/")
	if !strings.Contains(got, "greeting") || !strings.Contains(got, "Greeting: hello") {
		t.Errorf("explained:\n%s", got)
	}
}

// copyModule copies what of the module is built, tested and generated from.
func copyModule(t *testing.T) string {
	t.Helper()
	root, from := t.TempDir(), filepath.Join("..", "..")
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(root, name), 0o755)
		case entry.Type().IsRegular():
			copyFile(t, path, filepath.Join(root, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// addSample copies the folder of the sample room, and returns its files.
func addSample(t *testing.T, root string) []string {
	t.Helper()
	from, to := filepath.Join("testdata", "sample", "greeting"), filepath.Join(root, "internal", "feature", "greeting")
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.Mkdir(to, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, e := range entries {
		copyFile(t, filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		files[e.Name()] = true
	}
	return slices.Sorted(maps.Keys(files))
}

// insert puts texts before others, which stand in the file once, and returns how many
// lines were added.
func insert(t *testing.T, root, name string, pairs ...string) (lines int) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		added, before := pairs[i], pairs[i+1]
		if n := strings.Count(text, before); n != 1 {
			t.Fatalf("%s has %q %d times, want once", name, before, n)
		}
		text = strings.Replace(text, before, added+before, 1)
		lines += strings.Count(added, "\n")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return lines
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command in a folder and returns what it printed.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	// What was built of the module is found. The compiler is done sooner when it collects
	// less of its garbage.
	flags := os.Getenv("GOFLAGS")
	if flags == "" {
		flags = "-trimpath"
	}
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS="+flags, "GOGC=400")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}
