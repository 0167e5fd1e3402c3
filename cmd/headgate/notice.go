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

	"headgate/client"
)

func newNotice() *cobra.Command {
	cmd := group("notice", "List and test notices and webhooks", `notice shows the state of notices and webhooks, and sends test messages. They are defined under
notices and webhooks in the configuration.`+reachHelp)
	cmd.Example = `  headgate notice list
  headgate notice test phone`
	cmd.AddCommand(newNoticeList(), newNoticeTest())
	return cmd
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
			show := func(kind, name string, active *bool, state func(context.Context, string, ...client.Option) (*client.QueueState, error)) error {
				if active != nil && !*active {
					t.row(kind, name, "", "", "", "", "not active")
					return nil
				}
				s, err := state(ctx, name)
				if err != nil {
					return err
				}
				last := "never"
				if !s.LastTry.IsZero() {
					last = s.LastTry.Local().Format(time.DateTime)
				}
				t.row(kind, name, strconv.FormatInt(s.Sent, 10), strconv.Itoa(len(s.Waiting)), strconv.Itoa(len(s.Dead)), last, s.LastError)
				return nil
			}
			for o, err := range to.ListNotices(ctx) {
				if err == nil {
					err = show("notices", o.Name, o.Active, to.GetNoticeState)
				}
				if err != nil {
					return err
				}
			}
			for o, err := range to.ListWebhooks(ctx) {
				if err == nil {
					err = show("webhooks", o.Name, o.Active, to.GetWebhookState)
				}
				if err != nil {
					return err
				}
			}
			return t.end()
		})
	}
	return cmd
}

func newNoticeTest() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Send a test message and show the response",
		Long: `test sends a test message of a notice, or of a webhook with --webhook, and shows the
response. It exits with 1 if the message was not accepted.` + reachHelp,
		Example: `  headgate notice test phone
  headgate notice test ops --webhook`,
		Args: oneName("notice"),
	}
	webhook := cmd.Flags().Bool("webhook", false, "NAME is a webhook")
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind := "notices"
		if *webhook {
			kind = "webhooks"
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			var raw json.RawMessage
			if err := to.Do(ctx, http.MethodPost, "/"+kind+"/"+url.PathEscape(args[0])+"/test", struct{}{}, &raw); err != nil {
				return err
			}
			var out client.QueueTest
			if err := json.Unmarshal(raw, &out); err != nil {
				return fmt.Errorf("read the response of %s: %w", to.Name(), err)
			}
			if output.value == "json" {
				if err := writeJSON(cmd, raw); err != nil {
					return err
				}
			} else if out.Taken {
				fmt.Fprintf(screen{cmd.OutOrStdout()}, "accepted with %d in %.0f ms\n", out.Status, out.DurationMS)
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
