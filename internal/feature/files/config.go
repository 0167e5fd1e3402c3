package files

import (
	"path/filepath"
	"strings"

	"headgate/internal/schema"
)

// Config makes a route serve the files of a folder.
type Config struct {
	// Root is the folder. A relative path begins at the configuration file. Only files below
	// it are served: links that lead out of it, names that begin with a dot (except
	// .well-known), devices and pipes are not found. If the folder is replaced, for example
	// by a new release behind a symbolic link, the new one is used within a second.
	Root string `json:"root" required:"true" host:"admin" max:"4096" example:"/srv/www"`
	// Index names the files that are served for a folder, in order of preference. Absent
	// means index.html.
	Index []string `json:"index,omitempty" max:"8" example:"index.html"`
	// SPA is whether paths without a file get the first index file of the root instead of
	// 404, as single-page applications expect.
	SPA bool `json:"spa" default:"false"`
	// Precompressed lists the content codings whose compressed copies are served if the
	// client accepts them: `br` for FILE.br, `zstd` for FILE.zst, `gzip` for FILE.gz. If the
	// client prefers none, the first of the list is used. A copy that is older than its file
	// is ignored. Absent means none.
	Precompressed []string `json:"precompressed,omitempty" enum:"br,zstd,gzip" max:"3" example:"br"`
	// Listing is whether a folder without an index file is shown as a list of its files.
	Listing bool `json:"listing" default:"false"`
	// CacheControl is the Cache-Control header of files. Absent means none, so that browsers
	// use their own rules.
	CacheControl string `json:"cache_control,omitempty" max:"1024" example:"public, max-age=3600"`
}

// Check reports problems of the settings at a place.
func (c *Config) Check(at schema.Place) {
	if strings.ContainsRune(c.Root, 0) {
		at.Field("root").Problem("the path contains a NUL", "remove it")
	} else if clean := filepath.Clean(c.Root); c.Root != "" && filepath.IsAbs(clean) && filepath.Dir(clean) == clean {
		at.Field("root").Problem("the root is the whole file system", "name the folder with the files to serve")
	}
	for i, name := range c.Index {
		if segment := []byte(name); name == "" || strings.Contains(name, "/") || !visible(segment) || !native(segment) {
			at.Field("index").Index(i).Problemf("write a name such as index.html", "%q is not the name of a file in a folder", name)
		}
	}
	seen := map[string]bool{}
	for i, name := range c.Precompressed {
		if seen[name] {
			at.Field("precompressed").Index(i).Problemf("remove it", "%s is listed twice", name)
		}
		seen[name] = true
	}
	if what, remedy := schema.CheckFieldValue(c.CacheControl); what != "" {
		at.Field("cache_control").Problem(what, remedy)
	}
}

// defaultIndex is the index of settings without one.
var defaultIndex = []string{"index.html"}

// index returns the names of index files.
func (c *Config) index() []string {
	if len(c.Index) == 0 {
		return defaultIndex
	}
	return c.Index
}
