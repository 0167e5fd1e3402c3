package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate/internal/file"
	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/translate"
	"headgate/internal/schema"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import caddy|compose|fail2ban|haproxy|nginx|npm|traefik PATH...",
		Short: "Translate the configuration of another proxy",
		Long: `import translates the configuration of another proxy into a headgate configuration. It does
not apply anything.

The report has a verdict for every directive: same, close (with the difference), ignored
(with the reason), or not possible (with the reason).

For caddy, PATH is a Caddyfile, the JSON that caddy adapt prints, or the admin address of
a running Caddy. For haproxy, it is haproxy.cfg, or the files and folders that HAProxy is
started with, in their order. For nginx, it is nginx.conf, a file of sites-enabled, or the
output of nginx -T.

For npm, Nginx Proxy Manager, PATH is data/database.sqlite, which may be in use; or for
installations with MySQL or PostgreSQL the address of its web interface, with --source-token.

For traefik, PATH is its static and dynamic files, YAML or TOML, Compose files whose
services have its labels, and acme.json, whose certificates are written to the folder
imported beside the output; or the address of its API, which returns the result of files,
labels and templates.

For fail2ban, PATH is jail.local, or the folder /etc/fail2ban. Jails that watch the log of a
web server become ban rules that only observe; filters in filter.d are read.

For compose, PATH is Compose files whose services have labels of Traefik or of
caddy-docker-proxy, or variables of nginx-proxy such as VIRTUAL_HOST. Servers are named
after their services, so headgate has to be in the same network.

--ports changes the port numbers of the source, so that headgate can run beside
the proxy that it replaces; headgate cutover later moves them to the original port numbers.

The exit code is 1 if nothing could be read, or if the resulting configuration is not valid
yet. import then prints the problems, and what to add.`,
		Example: `  headgate import nginx /etc/nginx/nginx.conf -o headgate.yaml --report report.html
  headgate import nginx /etc/nginx/nginx.conf --ports 80=8080,443=8443 -o headgate.yaml
  nginx -T 2>/dev/null > all.conf && headgate import nginx all.conf -o headgate.yaml
  headgate import nginx site.conf
  headgate import haproxy /etc/haproxy/haproxy.cfg -o headgate.yaml --report report.html
  headgate import traefik traefik.yml dynamic.yml acme.json -o headgate.yaml --report report.html
  headgate import fail2ban /etc/fail2ban -o bans.yaml --report report.html
  headgate import compose compose.yaml -o headgate.yaml --report report.html
  headgate import npm /srv/npm/data/database.sqlite -o headgate.yaml --report report.html
  HEADGATE_SOURCE_TOKEN=… headgate import npm http://127.0.0.1:81 -o headgate.yaml`,
		Args:      arguments(2, math.MaxInt),
		ValidArgs: translate.Kinds(),
	}
	var o importOptions
	cmd.Flags().StringVarP(&o.output, "output", "o", "-", "write the configuration to `FILE`; - is standard output")
	cmd.Flags().StringVar(&o.report, "report", "", "write the report to `FILE` (.json or .html); by default a summary goes to standard error")
	cmd.Flags().StringSliceVar(&o.ports, "ports", nil, "`OLD=NEW` port numbers, to run beside the source proxy; for example 80=8080,443=8443")
	cmd.Flags().StringVar(&o.token, "source-token", "", "API `TOKEN` of the source proxy")
	cmd.Flags().BoolVar(&o.force, "force", false, "overwrite existing files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runImport(cmd, args[0], args[1:], o) }
	return cmd
}

// importOptions are the flags of import.
type importOptions struct {
	output, report string
	ports          []string
	token          string
	force          bool
}

// runImport translates the files at paths, and writes the result with its report.
func runImport(cmd *cobra.Command, kind string, paths []string, o importOptions) error {
	if ext := filepath.Ext(o.report); o.report != "" && ext != ".json" && ext != ".html" {
		return usage("invalid report %q: expected a name that ends in .json or .html", o.report)
	}
	numbers, err := translate.ParsePorts(o.ports)
	if err != nil {
		return usage("%v", err)
	}
	result, err := translate.Run(cmd.Context(), translate.Source{Kind: kind, Names: paths, Output: outputName(o.output), Token: o.token, Ports: numbers})
	if misuse := (*translate.Misuse)(nil); errors.As(err, &misuse) {
		return usage("%v", err)
	}
	if err != nil {
		return err
	}
	report := result.Report
	if err := writeNew(cmd.OutOrStdout(), o.output, result.Document, o.force); err != nil {
		return err
	}
	if err := writeFiles(o.output, report.Files, o.force); err != nil {
		return err
	}
	if err := writeReport(o.report, report, o.force); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	fmt.Fprintln(stderr, report.Summary())
	if o.report == "" && report.Counts[importer.Same] < len(report.Entries) {
		fmt.Fprintln(stderr, "use --report FILE.html for the verdict and reason of each directive")
	}
	for _, text := range report.Check {
		fmt.Fprintln(stderr, "look at:", text)
	}
	return stillMissing(result.Problems)
}

// writeNew writes a file that is not there yet.
func writeNew(stdout io.Writer, name string, data []byte, force bool) error {
	if name == "-" {
		_, err := stdout.Write(data)
		return err
	}
	if _, err := os.Lstat(name); err == nil && !force {
		return fmt.Errorf("%s already exists; choose another file, or add --force", name)
	}
	return file.Replace(name, data)
}

// writeFiles writes certificates and keys that the source contained, next to the document.
// Only their owner may read them.
func writeFiles(document string, files map[string][]byte, force bool) error {
	if len(files) == 0 {
		return nil
	}
	folder := "."
	if document != "-" {
		folder = filepath.Dir(document)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := writeNew(nil, path, files[name], force); err != nil {
			return err
		}
	}
	return nil
}

// writeReport writes the report in the format of its file name.
func writeReport(name string, r *importer.Report, force bool) error {
	var b bytes.Buffer
	switch filepath.Ext(name) {
	case ".json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			return err
		}
	case ".html":
		if err := r.WriteHTML(&b); err != nil {
			return err
		}
	default:
		return nil
	}
	return writeNew(nil, name, b.Bytes(), force)
}

// outputName is what problems call the document.
func outputName(out string) string {
	if out == "-" {
		return "the configuration"
	}
	return out
}

// stillMissing describes what is not valid yet in a document.
func stillMissing(problems []schema.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Error()
	}
	return fmt.Errorf("the resulting configuration is not valid yet:\n%s", strings.Join(lines, "\n"))
}
