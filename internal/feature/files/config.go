package files

import "headgate/internal/schema"

// Config makes a route serve the files of a folder.
type Config struct {
	// Root is the folder. A relative path begins at the configuration file. Only files below
	// it are served: links that lead out of it, names that begin with a dot (except
	// .well-known), devices and pipes are not found. If the folder is replaced, for example
	// by a new release behind a symbolic link, the new one is used within a second.
	Root string `json:"root" required:"true" host:"admin" local:"true" max:"4096" example:"/srv/www"`
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
	checkRoot(c.Root, at.Field("root"))
	checkIndex(c.Index, at.Field("index"))
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
