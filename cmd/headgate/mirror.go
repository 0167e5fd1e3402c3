package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newMirror() *cobra.Command {
	cmd := group("mirror", "Compare the responses of mirrors", `mirror shows how the responses to mirrored requests differ from those of the servers, on routes
whose mirror has compare: true.`+reachHelp)
	cmd.AddCommand(newMirrorReport())
	return cmd
}

func newMirrorReport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report [PROXY]",
		Short: "Show how mirrored responses differ",
		Long: `report shows for each route whose mirror has compare: true how many responses of the mirror were
the same as those of the servers, and how many differ: first by status, then by body, then by
a header field. Below, it shows the fields that differ and the latest differences. Times are those to the
response head. This machine counts since its start.` + reachHelp,
		Example: "  headgate mirror report shop",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("expected PROXY or nothing, got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	limit := cmd.Flags().Int("limit", 20, "show at most this `NUMBER` of differences of each route, up to 50")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var options []client.Option
		if len(args) == 1 {
			options = append(options, client.Query("proxy", args[0]))
		}
		all, err := askList[client.MirrorReport](cmd.Context(), to, "/mirrors", options...)
		if err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, all.raw)
		}
		out := cmd.OutOrStdout()
		if len(all.items) == 0 {
			_, err := fmt.Fprintln(out, "no responses are compared; add compare: true to the mirror of a route")
			return err
		}
		for i := range all.items {
			if err := printMirrorReport(out, &all.items[i], *limit); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// printMirrorReport writes the report of a route.
func printMirrorReport(out io.Writer, m *client.MirrorReport, limit int) error {
	fmt.Fprintln(out, printable(fmt.Sprintf("mirror of proxy %s, route %s", m.Proxy, m.Route)))
	fmt.Fprintf(out, "  %d compared: %d same; different status %d, body %d, header %d; %d incomplete, %d skipped\n",
		m.Compared, m.Same, m.Status, m.Body, m.Header, m.Incomplete, m.Skipped)
	for _, s := range []struct {
		name string
		side client.ResponseStats
	}{{"servers", m.Servers}, {"mirror", m.Mirror}} {
		fmt.Fprintf(out, "  %-7s  p50 %gms, p95 %gms, %d without a response\n", s.name, s.side.P50MS, s.side.P95MS, s.side.Failed)
	}
	for i, h := range m.Headers {
		if i == 0 {
			fmt.Fprint(out, "  headers that differ:")
		}
		fmt.Fprint(out, printable(fmt.Sprintf(" %s (%d)", h.Name, h.Requests)))
	}
	fmt.Fprintln(out)
	if len(m.Samples) == 0 {
		return nil
	}
	t := newTable(out, "REQUEST", "COUNT", "DIFFERENCE", "SERVERS", "MIRROR", "LAST")
	for _, s := range m.Samples[:min(len(m.Samples), max(limit, 0))] {
		t.row(s.Method+" "+s.Path, number(s.Requests), cmp.Or(s.Field, string(s.Kind)), responseText(s.Servers, s.Field), responseText(s.Mirror, s.Field), ago(s.Time))
	}
	if err := t.end(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// responseText describes one of two responses, with the value of the field that differs.
func responseText(r client.ComparedResponse, field string) string {
	if r.Status == 0 {
		return "no response"
	}
	text := fmt.Sprintf("%d, %d bytes, %gms", r.Status, r.Bytes, r.MS)
	if field != "" {
		text += ", " + cmp.Or(r.Value, "no "+field)
	}
	return text
}
