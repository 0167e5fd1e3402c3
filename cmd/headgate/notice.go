package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func newNotice() *cobra.Command {
	cmd := group("notice", "List and test notices and webhooks", `notice shows the state of notices and webhooks, and sends test messages. They are defined under
notices and webhooks in the configuration.`+reachHelp)
	cmd.Example = `  headgate notice list
  headgate notice test phone`
	cmd.AddCommand(newNoticeList(), newNoticeTest())
	return cmd
}

// queueKinds are what has messages: the kinds of the API, notices first.
var queueKinds = []string{"notices", "webhooks"}

// queueState is the part of a queue's state that is printed.
type queueState struct {
	Sent     int64             `json:"sent"`
	Waiting  []json.RawMessage `json:"waiting"`
	Dead     []json.RawMessage `json:"dead"`
	LastTry  time.Time         `json:"last_try"`
	LastFail string            `json:"last_error"`
}

func newNoticeList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Show the state of notices and webhooks", Args: noArguments,
		Long: `list shows each notice and webhook: how many messages were sent, how many wait or could not be
delivered, and why the last attempt failed.` + reachHelp,
	}
	r := addReach(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			t := newTable(cmd.OutOrStdout(), "KIND", "NAME", "SENT", "WAITING", "DEAD", "LAST", "ERROR")
			for _, kind := range queueKinds {
				all, err := askList[struct {
					Name   string `json:"name"`
					Active *bool  `json:"active"`
				}](ctx, to, "/"+kind)
				if err != nil {
					return err
				}
				for _, o := range all.items {
					if o.Active != nil && !*o.Active {
						t.row(kind, o.Name, "", "", "", "", "not active")
						continue
					}
					var s queueState
					if err := to.call(ctx, http.MethodGet, "/"+kind+"/"+url.PathEscape(o.Name)+"/state", nil, &s); err != nil {
						return err
					}
					last := "never"
					if !s.LastTry.IsZero() {
						last = s.LastTry.Local().Format(time.DateTime)
					}
					t.row(kind, o.Name, strconv.FormatInt(s.Sent, 10), strconv.Itoa(len(s.Waiting)), strconv.Itoa(len(s.Dead)), last, s.LastFail)
				}
			}
			return t.end()
		})
	}
	return cmd
}

func newNoticeTest() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Send a test message and show the answer",
		Long: `test sends a test message of a notice, or of a webhook with --webhook, and shows what the other
side answered. It exits with 1 if the message was not accepted.` + reachHelp,
		Example: `  headgate notice test phone
  headgate notice test ops --webhook`,
		Args: oneName("notice"),
	}
	webhook := cmd.Flags().Bool("webhook", false, "NAME is a webhook")
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind := queueKinds[0]
		if *webhook {
			kind = queueKinds[1]
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			var raw json.RawMessage
			if err := to.call(ctx, http.MethodPost, "/"+kind+"/"+url.PathEscape(args[0])+"/test", struct{}{}, &raw); err != nil {
				return err
			}
			var out struct {
				Taken    bool    `json:"taken"`
				Status   int     `json:"status"`
				Answer   string  `json:"answer"`
				Error    string  `json:"error"`
				Duration float64 `json:"duration_ms"`
			}
			if err := json.Unmarshal(raw, &out); err != nil {
				return fmt.Errorf("read the answer of %s: %w", to.place, err)
			}
			if output.value == "json" {
				if err := writeJSON(cmd, raw); err != nil {
					return err
				}
			} else if out.Taken {
				fmt.Fprintf(screen{cmd.OutOrStdout()}, "accepted with %d in %.0f ms\n", out.Status, out.Duration)
				if out.Answer != "" {
					fmt.Fprintf(screen{cmd.OutOrStdout()}, "answer: %s\n", out.Answer)
				}
			}
			if !out.Taken {
				return fmt.Errorf("the test message was not accepted: %s", printable(out.Error))
			}
			return nil
		})
	}
	return cmd
}
