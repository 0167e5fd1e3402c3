package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// house is where the module begins.
var house = filepath.Join("..", "..")

// pages returns the paths of all pages, from where the module begins.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(house, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != house && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".md"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("found %d pages: %v", len(all), err)
	}
	return all
}

// read returns the text of a page without its blocks of code.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(text), "")
}

// anchors returns the names by which links reach the headings of a page.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	drop := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")
		all[name] = true
	}
	for _, id := range regexp.MustCompile(`<a (?:id|name)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		all[id[1]] = true
	}
	return all
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	known := map[string]map[string]bool{} // the anchors of pages
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			path := page
			if to != "" {
				path = filepath.Join(filepath.Dir(page), filepath.FromSlash(to))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, m[1])
				continue
			}
			if anchor == "" || !strings.HasSuffix(path, ".md") {
				continue
			}
			if known[path] == nil {
				known[path] = anchors(read(t, path))
			}
			if !known[path][anchor] {
				t.Errorf("%s: %s has no heading for the link to %s", page, path, m[1])
			}
		}
	}
}

func TestArchitectureNamesEveryRoom(t *testing.T) {
	t.Parallel()
	page := filepath.Join(house, "docs", "architecture.md")
	text := read(t, page)
	err := filepath.WalkDir(filepath.Join(house, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(house, path)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(name)
		switch {
		case entry.Name() == "testdata" || room == "internal/feature":
			return filepath.SkipDir // rooms of features have one line
		case strings.HasSuffix(room, "test") || entry.Name() == "gen":
			return nil // of tests, and of go generate
		}
		sources, err := filepath.Glob(filepath.Join(path, "*.go"))
		if len(sources) > 0 && !strings.Contains(text, "`"+room+"`") {
			t.Errorf("%s: no room is called %s", page, room)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGuidesAreListed(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob(filepath.Join(house, "docs", "guides", "*.md"))
	if err != nil || len(guides) < 10 {
		t.Fatalf("found %d guides: %v", len(guides), err)
	}
	for list, to := range map[string]string{"README.md": "docs/guides/", "docs/guides/README.md": ""} {
		rows := map[string]int{}
		row := regexp.MustCompile(`(?m)^\|.*\]\(` + to + `([a-z0-9-]+\.md)\)`)
		for _, m := range row.FindAllStringSubmatch(read(t, filepath.Join(house, filepath.FromSlash(list))), -1) {
			rows[m[1]]++
		}
		for _, guide := range guides {
			name := filepath.Base(guide)
			if name == "README.md" || list == "README.md" && name == "coming-from.md" {
				continue
			}
			if rows[name] != 1 {
				t.Errorf("%s lists %s in %d rows, want one", list, name, rows[name])
			}
		}
	}
}

// TestGuidesOpenWithTheirResult holds docs/language.md: a reader learns first what they
// will have at the end of a guide.
func TestGuidesOpenWithTheirResult(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*.md", "moving/*.md"} {
		guides, err := filepath.Glob(filepath.Join(house, "docs", "guides", filepath.FromSlash(pattern)))
		if err != nil || len(guides) < 5 {
			t.Fatalf("found %d guides: %v", len(guides), err)
		}
		opening := regexp.MustCompile(`^# [^\n]+\n\nAfter you (read|follow) this page, `)
		for _, guide := range guides {
			if filepath.Base(guide) != "README.md" && !opening.MatchString(read(t, guide)) {
				t.Errorf("%s: open with what the reader will have at its end: After you follow this page, …", guide)
			}
		}
	}
}
