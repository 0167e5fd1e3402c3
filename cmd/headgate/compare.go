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
		Short: "Compare the responses of two proxies",
		Long: `compare sends the same requests to the current proxy and to headgate, and reports how the
responses differ: status, redirect targets, cookie attributes, CORS, caching and security
headers, other headers, body, certificate and HTTP version. For each proxy it reports the
percentage of requests with the same response.

compare sends each request to the current proxy twice and ignores what differs between its
own responses. It sends only GET, HEAD and OPTIONS unless --unsafe is given, and does not
follow redirects. Requests carry the real Host header and TLS server name, so DNS does not
need to change.

ADDRESS is HOST:PORT for http, https://HOST:PORT for https, or both separated by a comma;
an address without a port means 80 and 443. Without --new, compare uses the ports of the
configuration on this machine.

Requests are made from the routes of the configuration, or read from the file given with
--from (- for standard input): URLs, one per line, optionally after a method; or an access
log of headgate, Caddy or Traefik (JSON), nginx or Apache (combined).

Exit codes: 0 all responses are the same, 1 some differ or nothing could be compared, 2
invalid command line.`,
		Example: `  headgate compare --old 127.0.0.1:80 --new 127.0.0.1:8080
  headgate compare --old 127.0.0.1 --new 127.0.0.1:8080,https://127.0.0.1:8443 --from /var/log/nginx/access.log --host shop.example.com
  headgate compare --old 127.0.0.1 --domain example.com
  headgate compare --old 127.0.0.1 -o html > report.html`,
		Args: noArguments,
	}
	file := addConfig(cmd)
	f := cmd.Flags()
	old := f.StringSlice("old", nil, "`ADDRESS` of the current proxy")
	ours := f.StringSlice("new", nil, "`ADDRESS` of headgate; the ports of the configuration by default")
	from := f.String("from", "routes", "`FILE` with the requests, or routes to make them from the configuration")
	host := f.String("host", "", "`HOST` of requests from a log that does not record it")
	domains := f.StringSlice("domain", nil, "`DOMAIN` of requests to routes whose virtual hosts are expressions, like example.com for app.*, or that serve every host")
	limit := f.Int("limit", 1000, "maximum number of requests, 1 to 100000")
	rate := f.Float64("rate", 20, "maximum `REQUESTS` per second to each proxy")
	timeout := f.Duration("timeout", 10*time.Second, "time limit for each response")
	unsafe := f.Bool("unsafe", false, "also send POST, PUT, DELETE and other methods; servers act on each of them three times")
	noDNS := f.Bool("no-dns", false, "do not resolve hosts to find CDNs missing from client_ip")
	output := newChoice("text", "json", "html")
	f.VarP(output, "output", "o", "output format")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 || *limit > 100_000 || *rate <= 0 || *rate > 10_000 || *timeout <= 0 {
			return usage("--limit must be 1 to 100000, --rate above 0 and at most 10000, --timeout above 0")
		}
		c, err := comparedConfig(cmd, *file, *from, len(*ours) == 0)
		if err != nil {
			return err
		}
		o := compare.Options{Unsafe: *unsafe, Rate: *rate, Timeout: *timeout}
		if o.Old, o.New, err = sides(*old, *ours, c); err != nil {
			return err
		}
		if err := checkDomains(*domains, *from); err != nil {
			return err
		}
		notes, err := chooseRequests(cmd, &o, compare.Choice{Config: c, Host: *host, Domains: *domains, Limit: *limit}, *from)
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

// checkDomains refuses domains that are none, or that are not used.
func checkDomains(domains []string, from string) error {
	if from != "routes" && len(domains) > 0 {
		return usage("--domain is for requests from routes; the file of --from names the hosts")
	}
	for _, domain := range domains {
		if err := compare.CheckDomain(domain); err != nil {
			return usage("%v of --domain", err)
		}
	}
	return nil
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
		return a, b, usage("--old is required: the address of the current proxy, like --old 127.0.0.1:80")
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
		err = usage("the configuration has no http or https port; specify one with --new")
	}
	return a, b, err
}

// chooseRequests fills in the requests.
func chooseRequests(cmd *cobra.Command, o *compare.Options, choice compare.Choice, from string) (notes []string, err error) {
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

// progressEvery is the interval of progress messages.
const progressEvery = 5 * time.Second

// progress returns a function that prints the number of compared requests, at most once in
// every interval.
func progress(out io.Writer, every time.Duration) func(done, all int) {
	last := time.Now()
	return func(done, all int) {
		if time.Since(last) >= every && done < all {
			last = time.Now()
			fmt.Fprintf(out, "%d of %d requests compared\n", done, all)
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
		report.Notes = append(report.Notes, "the comparison was interrupted")
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
