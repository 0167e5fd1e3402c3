package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackageCommentsNameFilesThatAreThere holds the maps of files that package
// comments give.
func TestPackageCommentsNameFilesThatAreThere(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`(?:^|[\s(])([a-z][a-z0-9_]*\.go)\b`)
	err := filepath.WalkDir(filepath.Join(house, "internal"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		for _, m := range name.FindAllStringSubmatch(file.Doc.Text(), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: the package's comment names %s, which is not there; name the file that holds it now", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
