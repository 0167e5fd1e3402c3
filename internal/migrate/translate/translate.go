// Package translate reads the configuration of another proxy by the importer that is for
// it, and says whether what comes of it is a valid configuration of headgate. The command
// line and the API use it alike.
//
// Run is the way. It writes nothing and applies nothing. The importers are below
// migrate/importer.
package translate

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/caddy"
	"headgate/internal/migrate/importer/fail2ban"
	"headgate/internal/migrate/importer/haproxy"
	"headgate/internal/migrate/importer/nginx"
	"headgate/internal/migrate/importer/npm"
	"headgate/internal/migrate/importer/traefik"
	"headgate/internal/schema"
	"headgate/internal/server/safedial"
)

// Source is what is read.
type Source struct {
	// Kind is one of Kinds.
	Kind string
	// Names are the files, or one address of a proxy that runs.
	Names []string
	// Files is how files are read; the zero value reads those of the system.
	Files importer.Files
	// Output is the name of the document in the problems; headgate.yaml if it is empty.
	Output string
	// Token is what the proxy at an address wants to see.
	Token string
	// Ports are the numbers that ports get in the document in the place of those in the
	// source (see ParsePorts), so that both proxies can run side by side.
	Ports map[uint16]uint16
}

// Result is what a source became.
type Result struct {
	// Document is the configuration of headgate.
	Document []byte
	// Report says of every directive what became of it.
	Report *importer.Report
	// Problems are why the document is not valid yet; then a person has to add something.
	Problems []schema.Problem
}

// Misuse is the error of a Source that cannot be meant so.
type Misuse struct{ what string }

// Error says what is wrong with it.
func (m *Misuse) Error() string { return m.what }

func misused(format string, args ...any) error { return &Misuse{fmt.Sprintf(format, args...)} }

// reader reads one kind of source.
type reader struct {
	files func(names []string, files importer.Files) ([]byte, *importer.Report, error)
	// live asks a proxy that runs; nil if it has no such door.
	live func(ctx context.Context, client *http.Client, address, token string) ([]byte, *importer.Report, error)
}

var readers = map[string]reader{
	"caddy":    {files: caddy.Import, live: caddy.FromAPI},
	"compose":  {files: composeFiles},
	"fail2ban": {files: fail2ban.Import},
	"haproxy":  {files: haproxy.Import},
	"nginx":    {files: nginx.Import},
	"npm":      {files: oneDatabase, live: npm.FromAPI},
	"traefik":  {files: traefik.Import, live: traefik.FromAPI},
}

// Kinds returns the names of the sources that can be read.
func Kinds() []string { return slices.Sorted(maps.Keys(readers)) }

// oneDatabase reads the database of Nginx Proxy Manager.
func oneDatabase(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	// The database may bring its write-ahead log along.
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasSuffix(n, "-wal") || strings.HasSuffix(n, "-shm") })
	if len(names) != 1 {
		return nil, nil, misused("want one database.sqlite, or the address of Nginx Proxy Manager, have %d names", len(names))
	}
	return npm.Import(names[0], files)
}

// liveTimeout is how long one question to a proxy that runs may take.
const liveTimeout = 30 * time.Second

// Run translates a source. The error says where what cannot be read stands; there is no
// result then.
func Run(ctx context.Context, s Source) (*Result, error) {
	r, ok := readers[s.Kind]
	if !ok {
		return nil, misused("unknown source %q, want one of %s", s.Kind, strings.Join(Kinds(), ", "))
	}
	if len(s.Names) == 0 {
		return nil, misused("there is nothing to read")
	}
	document, report, err := r.read(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(s.Ports) > 0 {
		var checks []string
		if document, checks, err = moved(document, s.Ports); err != nil {
			return nil, err
		}
		report.Check = append(report.Check, checks...)
	}
	_, _, problems := config.Load(cmp.Or(s.Output, "headgate.yaml"), document)
	return &Result{Document: document, Report: report, Problems: problems}, nil
}

func (r reader) read(ctx context.Context, s Source) ([]byte, *importer.Report, error) {
	if !slices.ContainsFunc(s.Names, IsAddress) {
		return r.files(s.Names, s.Files)
	}
	if r.live == nil {
		return nil, nil, misused("%s has no address that its configuration can be asked at; name its files", s.Kind)
	}
	if len(s.Names) != 1 {
		return nil, nil, misused("an address stands alone, have %d names", len(s.Names))
	}
	client := safedial.Client(liveTimeout, (*x509.CertPool)(nil))
	defer client.CloseIdleConnections()
	return r.live(ctx, client, s.Names[0], s.Token)
}

// IsAddress reports whether a name is the address of a proxy that runs, and no file.
func IsAddress(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}
