package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

// follow reads a stream of the API until it ends, the command is interrupted or each returns
// an error. Each gets the kind and the data of a message.
func (to *remote) follow(ctx context.Context, path string, each func(kind string, data []byte) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	for m, err := range to.Follow(ctx, path) {
		if err == nil {
			err = each(m.Event, m.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// show prints an object of a list or a stream: as one line of JSON, or as text.
func (c *choice) show(out io.Writer, raw []byte, text func() (string, error)) error {
	if c.value == "json" {
		_, err := fmt.Fprintf(out, "%s\n", plainJSON(raw))
		return err
	}
	line, err := text()
	if err == nil {
		_, err = fmt.Fprintln(out, printable(line))
	}
	return err
}

func newLogsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show recent requests",
		Long: `logs shows the recent requests that headgate keeps in memory, newest last. With --follow it
continues with new requests. With -o json it prints one request per line. --node shows those of
another machine of the group.` + reachHelp,
		Example: `  headgate logs --status 5xx
  headgate logs --follow --host shop.example.com --slower-than 250ms
  headgate logs --follow --node web2`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	follow := cmd.Flags().BoolP("follow", "f", false, "continue with new requests as they complete")
	limit := cmd.Flags().IntP("limit", "n", 100, "maximum number of requests to show, up to 1000")
	filters := map[string]*string{"node": addNode(cmd)}
	for _, f := range [][2]string{
		{"host", "`HOST`; *.example.com matches all its subdomains"}, {"proxy", "`NAME` of the proxy"}, {"server", "`SERVER` that sent the response"},
		{"status", "`STATUS`, a class like 5xx, or a range like 400-499"}, {"reason", "`REASON` of the response; any matches every request that has a reason"},
		{"client", "`ADDRESS` or network of the client"}, {"country", "`COUNTRY` of the client, such as DE"}, {"asn", "`NUMBER` of the client's network"}, {"method", "`METHOD`"}, {"path", "prefix of the `PATH`"},
		{"slower-than", "minimum `DURATION`, such as 250ms"}, {"request-id", "request `ID`"}, {"text", "`TEXT` in host, path, query, server, user, agent, referer or cause"},
	} {
		filters[f[0]] = cmd.Flags().String(f[0], "", f[1])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 || *limit > 1000 {
			return usage("invalid limit %d: expected 1 to 1000", *limit)
		}
		q := url.Values{}
		for name, value := range filters {
			if *value != "" {
				q.Set(strings.ReplaceAll(name, "-", "_"), *value)
			}
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		if !*follow {
			q.Set("limit", strconv.Itoa(*limit))
			return showPage(cmd, to, "/logs/access?"+q.Encode(), func(raw []byte) error { return showRequest(cmd, output, raw) })
		}
		return to.follow(cmd.Context(), "/logs/access/stream?"+q.Encode(), func(kind string, data []byte) error {
			if kind == "request" {
				return showRequest(cmd, output, data)
			}
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", printable(kind), data)
			return err
		})
	}
	return cmd
}

// showPage shows one page of a list, which comes the newest first, the newest last.
func showPage(cmd *cobra.Command, to *remote, path string, show func([]byte) error) error {
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := to.Do(cmd.Context(), http.MethodGet, path, nil, &page); err != nil {
		return err
	}
	for i := len(page.Items) - 1; i >= 0; i-- {
		if err := show(page.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func showRequest(cmd *cobra.Command, output *choice, raw []byte) error {
	return output.show(cmd.OutOrStdout(), raw, func() (string, error) {
		var q client.Request
		if err := json.Unmarshal(raw, &q); err != nil {
			return "", fmt.Errorf("read a request: %w", err)
		}
		line := fmt.Sprintf("%s %s %s", q.Time.Local().Format("2006-01-02 15:04:05.000"), orNone(q.ClientIP), q.Proto)
		if q.Method != "" {
			line += fmt.Sprintf(" %d %s %s://%s%s", q.Status, q.Method, q.Scheme, q.Host, q.Path)
		}
		line += fmt.Sprintf(" %.1fms proxy=%s", q.DurationMS, orNone(q.Proxy))
		network := ""
		if q.ASN > 0 {
			network = fmt.Sprint(q.ASN)
		}
		for _, f := range [][2]string{{"country", q.Country}, {"asn", network}, {"server", q.Server}, {"reason", q.Reason}, {"cause", q.Cause}} {
			if f[1] != "" {
				line += " " + f[0] + "=" + f[1]
			}
		}
		return line, nil
	})
}

func newEvents() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show events",
		Long: `events shows recent events, newest last. With --follow it continues with new events. With
-o json it prints one event per line.` + reachHelp,
		Example: `  headgate events --types config.*,certificate.*
  headgate events --follow -o json`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	follow := cmd.Flags().BoolP("follow", "f", false, "continue with new events")
	limit := cmd.Flags().IntP("limit", "n", 100, "maximum number of events to show, up to 1000")
	types := cmd.Flags().String("types", "", "event `TYPES`, separated by commas; config.* matches all types of an object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 || *limit > 1000 {
			return usage("invalid limit %d: expected 1 to 1000", *limit)
		}
		q := url.Values{}
		if *types != "" {
			q.Set("types", *types)
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		show := func(raw []byte) error { return showEvent(cmd, output, raw) }
		if !*follow {
			q.Set("limit", strconv.Itoa(*limit))
			return showPage(cmd, to, "/events/history?"+q.Encode(), show)
		}
		return to.follow(cmd.Context(), "/events?"+q.Encode(), func(_ string, data []byte) error { return show(data) })
	}
	return cmd
}

func showEvent(cmd *cobra.Command, output *choice, raw []byte) error {
	return output.show(cmd.OutOrStdout(), raw, func() (string, error) {
		var e client.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return "", fmt.Errorf("read an event: %w", err)
		}
		return fmt.Sprintf("%s %-7s %s %s", e.Time.Local().Format(time.DateTime), e.Level, e.Type, e.Text), nil
	})
}
