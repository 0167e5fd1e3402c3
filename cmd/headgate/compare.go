package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/migrate/compare"
)

func newCompare() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare --old ADDRESS --new ADDRESS",
		Short: "Compare the answers of two proxies",
		Long: `compare asks the proxy that runs today and headgate the same requests and tells how
their answers differ: status, where redirects lead, attributes of cookies, CORS, what
caches and browsers are told, other headers, the content, certificates and the version
of HTTP; and for each proxy how many percent of its requests are answered alike.

The old proxy is asked twice: what differs between its own answers is noise and is not
told. Only GET, HEAD and OPTIONS are sent unless --unsafe says otherwise, and redirects
are not followed. Host and the name in TLS are the real ones, so DNS need not change.

ADDRESS is HOST:PORT for http, https://HOST:PORT for https, or both with a comma; an
address without a port means 80 and 443. Without --new, the ports of the configuration
are asked on this machine.

The requests come from the routes of the configuration, or with --from from a file, -
for standard input: URLs, one a line, with a method before it or without; or an access
log of headgate, Caddy or Traefik (JSON), nginx or Apache (combined).

The exit code is 0 when all are answered alike, 1 when some are not or when nothing
could be compared, 2 when the command line is wrong.`,
		Example: `  headgate compare --old 127.0.0.1:80 --new 127.0.0.1:8080
  headgate compare --old 127.0.0.1 --new 127.0.0.1:8080,https://127.0.0.1:8443 --from /var/log/nginx/access.log --host shop.example.com
  headgate compare --old 127.0.0.1 -o html > report.html`,
		Args: noArguments,
	}
	file := addConfig(cmd)
	f := cmd.Flags()
	old := f.StringSlice("old", nil, "`ADDRESS` of the proxy that runs today")
	ours := f.StringSlice("new", nil, "`ADDRESS` of headgate; the default is the ports of the configuration")
	from := f.String("from", "routes", "`FILE` with the requests, or routes")
	host := f.String("host", "", "`HOST` of requests from a log that names none")
	limit := f.Int("limit", 1000, "at most so many requests, 1 to 100000")
	rate := f.Float64("rate", 20, "at most so many requests a `SECOND` to each side")
	timeout := f.Duration("timeout", 10*time.Second, "how long one answer may take")
	unsafe := f.Bool("unsafe", false, "send POST, PUT, DELETE and others too; servers then act on them three times")
	noDNS := f.Bool("no-dns", false, "do not look up hosts to find CDNs that client_ip does not name")
	output := newChoice("text", "json", "html")
	f.VarP(output, "output", "o", "form of the output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 || *limit > 100_000 || *rate <= 0 || *rate > 10_000 || *timeout <= 0 {
			return usage("--limit is 1 to 100000, --rate above 0 and at most 10000, --timeout above 0")
		}
		c, err := comparedConfig(cmd, *file, *from, len(*ours) == 0)
		if err != nil {
			return err
		}
		o := compare.Options{Unsafe: *unsafe, Rate: *rate, Timeout: *timeout}
		if o.Old, o.New, err = sides(*old, *ours, c); err != nil {
			return err
		}
		notes, err := chooseRequests(cmd, &o, c, *from, *host, *limit)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if c != nil && !*noDNS {
			notes = append(notes, compare.CheckCDN(ctx, c, net.DefaultResolver, compare.Proxies(o.Requests))...)
		}
		return runCompare(ctx, cmd, o, notes, output.value)
	}
	return cmd
}

// comparedConfig reads the configuration; it is nil where none is needed and none is
// found.
func comparedConfig(cmd *cobra.Command, named, from string, needed bool) (*config.Config, error) {
	name, documents, err := readDocuments(cmd, named)
	if err != nil {
		if named == "" && from != "routes" && !needed {
			return nil, nil
		}
		return nil, err
	}
	c, _, problems := config.LoadDocuments(documents, nil)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), printProblems(cmd, problems))
	}
	return c, nil
}

// sides reads the addresses of both sides.
func sides(old, ours []string, c *config.Config) (a, b compare.Side, err error) {
	if len(old) == 0 {
		return a, b, usage("want --old, the address of the proxy that runs today, like --old 127.0.0.1:80")
	}
	if a, err = compare.ParseSide(old); err != nil {
		return a, b, usage("%v of --old", err)
	}
	if len(ours) > 0 {
		if b, err = compare.ParseSide(ours); err != nil {
			return a, b, usage("%v of --new", err)
		}
		return a, b, nil
	}
	b = compare.SideOfPorts(c)
	if b == (compare.Side{}) {
		err = usage("the configuration has no http or https port; name one with --new")
	}
	return a, b, err
}

// chooseRequests fills in the requests.
func chooseRequests(cmd *cobra.Command, o *compare.Options, c *config.Config, from, host string, limit int) (notes []string, err error) {
	choice := compare.Choice{Config: c, Host: host, Limit: limit}
	switch from {
	case "routes":
	case "-":
		choice.List = cmd.InOrStdin()
	default:
		f, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		choice.List = f
	}
	o.Requests, notes, err = choice.Requests()
	return notes, err
}

// progressEvery is how often somebody who waits hears how far it is.
const progressEvery = 5 * time.Second

// progress returns a func that tells how many requests were compared, now and then.
func progress(out io.Writer, every time.Duration) func(done, all int) {
	last := time.Now()
	return func(done, all int) {
		if time.Since(last) >= every && done < all {
			last = time.Now()
			fmt.Fprintf(out, "%d of %d requests are compared\n", done, all)
		}
	}
}

// runCompare compares and prints the report.
func runCompare(ctx context.Context, cmd *cobra.Command, o compare.Options, notes []string, format string) error {
	if isTerminal(cmd.ErrOrStderr()) {
		o.Progress = progress(cmd.ErrOrStderr(), progressEvery)
	}
	report, err := compare.Run(ctx, o)
	if report == nil {
		return err
	}
	if err != nil {
		report.Notes = append(report.Notes, "the comparison was stopped before its end")
	}
	report.Note(notes...)
	var b bytes.Buffer
	switch format {
	case "json":
		err = writeJSON(cmd, report)
	case "html":
		err = report.WriteHTML(&b)
	default:
		err = report.WriteText(&b)
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(cmd.OutOrStdout(), &b); err != nil {
		return err
	}
	if report.Requests == 0 || report.Ready < report.Requests {
		return &exitError{code: exitInvalid}
	}
	return nil
}
