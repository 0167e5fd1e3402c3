package decode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Bounds of what ${…} puts into a value.
const (
	maxSecretFile = 64 * unit.KiB
	maxExpanded   = 1 * unit.MiB
	// minSecret is the minimum length in bytes of a file's content to mask. Shorter texts
	// occur by chance, and are not secrets.
	minSecret = 4
)

// Expander replaces ${VAR}, ${VAR:-text} and ${file:/path} by their values.
type Expander struct {
	// Dir is where relative paths of files begin; "" if they have no beginning.
	Dir string
	// Lookup returns the value of a variable, and whether it is set.
	Lookup func(name string) (string, bool)
	// Read returns the content of a file. Its error has no path.
	Read func(path string) ([]byte, error)
	// Secrets are the contents of files and the values of variables of headgate itself, each
	// with its reference.
	Secrets map[string]string
}

// NewExpander returns an expander over the environment and the file system, in which
// relative paths begin in dir.
func NewExpander(dir string) *Expander {
	return &Expander{Dir: dir, Lookup: os.LookupEnv, Read: readSecret}
}

// variableName is the form of a variable's name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Text returns s with every ${…} replaced once: replaced text is not expanded again. $${ is
// replaced by ${.
func (e *Expander) Text(s string) (string, *target.Fault) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		reference, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return "", wrong("${ has no closing }", "write $${ for a plain ${")
		}
		value, f := e.reference(reference)
		if f != nil {
			return "", f
		}
		if b.WriteString(value); b.Len() > int(maxExpanded) {
			return "", wrong(fmt.Sprintf("the value is longer than %v with its variables replaced", maxExpanded), "")
		}
		s = rest
	}
}

// reference returns the value of ${reference}.
func (e *Expander) reference(reference string) (string, *fault) {
	if path, ok := strings.CutPrefix(reference, "file:"); ok {
		return e.file(path)
	}
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !variableName.MatchString(name) {
		return "", wrong(fmt.Sprintf("${%s} is not a variable", Shorten(reference)), "write ${NAME}, ${NAME:-text} or ${file:/path}; $${ gives a plain ${")
	}
	value, ok := e.Lookup(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !ok:
		return "", wrong(fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("set it, or write ${%s:-text} for a text without it", name))
	case !utf8.ValidString(value):
		return "", wrong(fmt.Sprintf("the environment variable %s is not UTF-8", name), "")
	}
	if strings.HasPrefix(strings.ToUpper(name), "HEADGATE_") { // as the password of a database
		e.keepSecret(value, reference)
	}
	return value, nil
}

// keepSecret remembers a value that is masked where it is shown.
func (e *Expander) keepSecret(value, reference string) {
	if len(value) < minSecret {
		return
	}
	if e.Secrets == nil {
		e.Secrets = map[string]string{}
	}
	e.Secrets[value] = "${" + reference + "}"
}

func (e *Expander) file(path string) (string, *fault) {
	named := path
	switch {
	case path == "":
		return "", wrong("${file:} names no file", "write ${file:/run/secrets/name}")
	case !filepath.IsAbs(path) && e.Dir == "":
		return "", wrong(fmt.Sprintf("the path of ${file:%s} is not absolute", Shorten(path)), "write it from the root: ${file:/run/secrets/name}")
	case !filepath.IsAbs(path):
		path = filepath.Join(e.Dir, path)
	}
	data, err := e.Read(path)
	if err != nil {
		return "", wrong(fmt.Sprintf("${file:%s}: %v", path, err), "make the file readable for headgate")
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", wrong(fmt.Sprintf("the file %s is not valid UTF-8 text", path), "")
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	e.keepSecret(value, "file:"+named)
	return value, nil
}

// readSecret reads a small regular file.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, plainPathError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, plainPathError(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(maxSecretFile)+1))
	if err == nil && len(data) > int(maxSecretFile) {
		err = fmt.Errorf("larger than %v", maxSecretFile)
	}
	return data, err
}

// plainPathError removes the path from an error whose message already has it.
func plainPathError(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
