package lists

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate/internal/file"
	"headgate/internal/setting/ipset"
)

// A list from elsewhere is kept in a file of its own below the state directory, so that it
// is there at the next start before anything can be downloaded. The file is named by the
// list and by where it comes from: that of another URL is not taken for it.
const keptSuffix = ".list"

// keptFile returns the name of the file of a list, "" where nothing is kept.
func (l *List) keptFile() string {
	if l.o.Dir == "" {
		return ""
	}
	of := sha256.Sum256([]byte(l.settings.Source() + "\n" + l.settings.URL + "\n" + strings.Join(l.settings.Entries, "\n")))
	return filepath.Join(l.o.Dir, l.name+"-"+hex.EncodeToString(of[:6])+keptSuffix)
}

// dated is the first line of a kept list.
const dated = "# loaded "

// keep writes the networks of the list to its file.
func (l *List) keep(networks []netip.Prefix) error {
	name := l.keptFile()
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n", dated, l.o.Clock().UTC().Format(time.RFC3339))
	for _, p := range networks {
		b.Write(p.AppendTo(b.AvailableBuffer()))
		b.WriteByte('\n')
	}
	return write(name, b.Bytes())
}

func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return file.Replace(name, data)
}

// kept reads the networks of the list from its file.
func (l *List) kept() ([]netip.Prefix, time.Time, error) {
	name := l.keptFile()
	if name == "" {
		return nil, time.Time{}, fs.ErrNotExist
	}
	data, err := file.Read(name, 2*maxBytes, "more than was written")
	if err != nil {
		return nil, time.Time{}, err
	}
	first, _, _ := bufio.NewReader(bytes.NewReader(data)).ReadLine()
	when, err := time.Parse(time.RFC3339, strings.TrimPrefix(string(first), dated))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", name, err)
	}
	p, err := parse(data)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", name, err)
	}
	return p.networks, when, nil
}

// readKept takes the entries that were kept. They are screened as if they came now.
func (l *List) readKept() {
	networks, when, err := l.kept()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.log.Warn("the saved list cannot be used", "error", err)
		}
		return
	}
	set, left := l.screened(networks)
	l.content.Store(&content{set: set})
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.mu.state
	s.Entries, s.Loaded, s.Issues = set.Len(), when, left
	s.State, s.Since = Ready, l.o.Clock()
}

func (l *List) screened(networks []netip.Prefix) (*ipset.Set, []Issue) {
	kept, left := screen(networks, l.o.protected)
	return ipset.Of(kept), left.issues()
}

// keptNames is what is kept of host names.
type keptNames map[string]keptName

type keptName struct {
	Addresses []netip.Addr `json:"addresses"`
	At        time.Time    `json:"at"`
}

func (l *List) keepNames(names keptNames) error {
	file := l.keptFile()
	if file == "" {
		return nil
	}
	data, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return write(file, data)
}

func (l *List) readNames() keptNames {
	out := keptNames{}
	if name := l.keptFile(); name != "" {
		if data, err := file.Read(name, maxBytes, "more than was written"); err == nil {
			_ = json.Unmarshal(data, &out) // what cannot be read is looked up
		}
	}
	return out
}

// sweep removes the files of lists that are not among some.
func sweep(dir string, lists map[string]*List) {
	if dir == "" {
		return
	}
	wanted := map[string]bool{}
	for _, l := range lists {
		wanted[l.keptFile()] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); strings.HasSuffix(e.Name(), keptSuffix) && !wanted[name] {
			_ = os.Remove(name) // one that stays does no harm
		}
	}
}
