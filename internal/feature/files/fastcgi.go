package files

import (
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// FastCGI makes a route run the scripts of a folder on a FastCGI server such as php-fpm, and
// serve the other files of the folder.
type FastCGI struct {
	// Root is the folder of the site. A relative path begins at the configuration file. A
	// script runs only if it is a regular file below it: headgate must be able to search the
	// folder, even if the server is in a container.
	Root string `json:"root" required:"true" host:"admin" local:"true" max:"4096" example:"/srv/wordpress"`
	// ServerRoot is the path of the same folder on the FastCGI server, for SCRIPT_FILENAME
	// and DOCUMENT_ROOT. Absent means root.
	ServerRoot string `json:"server_root,omitempty" max:"4096" example:"/var/www/html"`
	// Index names the files that are served or run for a folder, in order of preference.
	// Absent means index.php and index.html.
	Index []string `json:"index,omitempty" max:"8" example:"index.php"`
	// SplitPath are the ends of the names of scripts. In a path, what follows the first
	// existing script is PATH_INFO. Absent means .php.
	SplitPath []string `json:"split_path,omitempty" max:"8" example:".php"`
	// FrontController is whether paths without a file run the first script of index in the
	// root, as WordPress, Nextcloud, Laravel and Symfony expect. With `false` the response is
	// 404.
	FrontController bool `json:"front_controller" default:"true"`
	// Static is whether files that are no scripts are served. Files whose name contains .php
	// or ends with another extension of PHP are never sent. With `false`, paths of files are
	// treated as paths without a file.
	Static bool `json:"static" default:"true"`
	// Params are parameters for scripts beside those of CGI. They replace those of the same
	// name.
	Params []Param `json:"params,omitempty" max:"64" object:"parameter,name"`
	// RequestBuffer is how much of a request body is buffered in memory if its length is not
	// known (`Transfer-Encoding: chunked`), because FastCGI needs the length first. Larger
	// ones get 411.
	RequestBuffer unit.Size `json:"request_buffer" default:"1MiB" min:"0" max:"64MiB"`
	// KeepConnections is whether a connection is used for more than one request. A php-fpm
	// process serves one connection until it is closed: set max_requests of each server to at
	// most the process limit (pm.max_children), or requests wait for processes that idle
	// connections hold.
	KeepConnections bool `json:"keep_connections" default:"false"`
}

// Param is a parameter for scripts, which PHP has in $_SERVER.
type Param struct {
	// Name is the name of the parameter: letters, digits and underscores.
	Name string `json:"name" required:"true" max:"128" example:"APP_ENV"`
	// Value is the value of the parameter. It is shown to operators; write ${VARIABLE} or
	// ${file:…} to keep a secret out of the configuration.
	Value string `json:"value" max:"4096" example:"production"`
}

// defaultScripts and defaultScriptIndex are the settings if there are none.
var (
	defaultScripts     = []string{".php"}
	defaultScriptIndex = []string{"index.php", "index.html"}
)

// scripts returns the ends of names of scripts.
func (c *FastCGI) scripts() []string {
	if len(c.SplitPath) == 0 {
		return defaultScripts
	}
	return c.SplitPath
}

// index returns the names of index files.
func (c *FastCGI) index() []string {
	if len(c.Index) == 0 {
		return defaultScriptIndex
	}
	return c.Index
}

// isScript reports whether a name ends as one of a script.
func (c *FastCGI) isScript(name string) bool {
	return slices.ContainsFunc(c.scripts(), func(end string) bool { return len(name) > len(end) && strings.HasSuffix(name, end) })
}

// Check reports problems of the settings at a place.
func (c *FastCGI) Check(at schema.Place) {
	checkRoot(c.Root, at.Field("root"))
	if r := c.ServerRoot; r != "" && (r[0] != '/' || strings.ContainsRune(r, 0)) {
		at.Field("server_root").Problem("the path is not absolute", "write the path as the FastCGI server has it, like /var/www/html")
	}
	checkIndex(c.Index, at.Field("index"))
	for i, end := range c.SplitPath {
		if len(end) < 2 || end[0] != '.' || strings.ContainsAny(end[1:], "./\\%") || strings.ContainsFunc(end, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			at.Field("split_path").Index(i).Problemf("write an extension such as .php", "%q is not an extension", end)
		}
	}
	if c.FrontController && !slices.ContainsFunc(c.index(), c.isScript) {
		at.Field("index").Problem("no index file is a script, which front_controller needs", "add index.php, or write front_controller: false")
	}
	seen := map[string]bool{}
	for i := range c.Params {
		p, place := &c.Params[i], at.Field("params").Index(i)
		p.check(place)
		if seen[p.Name] {
			place.Field("name").Problemf("remove one of them", "%s is set twice", p.Name)
		}
		seen[p.Name] = true
	}
}

// computed are the parameters that decide which file runs and where a request ends.
var computed = []string{"SCRIPT_FILENAME", "PATH_INFO", "PATH_TRANSLATED", "CONTENT_LENGTH", "REQUEST_METHOD"}

func (p *Param) check(at schema.Place) {
	name := at.Field("name")
	switch {
	case strings.ContainsFunc(p.Name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}):
		name.Problemf("use letters, digits and underscores", "%q is not the name of a parameter", p.Name)
	case strings.HasPrefix(p.Name, "HTTP_"):
		name.Problem("parameters that begin with HTTP_ are the header fields of the request", "add a rule to headers")
	case slices.Contains(computed, p.Name):
		name.Problemf("remove it", "%s is set by headgate for each request", p.Name)
	}
	if strings.ContainsRune(p.Value, 0) {
		at.Field("value").Problem("the value contains a NUL", "remove it")
	}
}

// checkRoot reports a folder that cannot be served.
func checkRoot(root string, at schema.Place) {
	if strings.ContainsRune(root, 0) {
		at.Problem("the path contains a NUL", "remove it")
	} else if clean := filepath.Clean(root); root != "" && filepath.IsAbs(clean) && filepath.Dir(clean) == clean {
		at.Problem("the root is the whole file system", "name the folder with the files to serve")
	}
}

// checkIndex reports names that no file in a folder has.
func checkIndex(index []string, at schema.Place) {
	for i, name := range index {
		if segment := []byte(name); name == "" || strings.Contains(name, "/") || !visible(segment) || !native(segment) {
			at.Index(i).Problemf("write a name such as index.html", "%q is not the name of a file in a folder", name)
		}
	}
}
