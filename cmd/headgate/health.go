package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// adminAddress is where the admin listener is unless the configuration moves it.
const adminAddress = "127.0.0.1:9080"

// healthTimeout is how long the answer of a health page may take.
const healthTimeout = 3 * time.Second

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check health",
		Long: `health queries the health endpoint of a headgate. It exits with 0 if headgate is healthy,
and with 1 if it is not or does not respond. Container images use it as their health check.

With --ready it reports whether this machine should get requests: all its ports listen, and it
is neither stopping nor drained (see "headgate node drain"). The servers behind it have no
influence. Load balancers and keepalived use this check.` + reachHelp,
		Example: `  headgate health
  headgate health --ready
  headgate health --page readyz --admin 127.0.0.1:9080`,
		Args: noArguments,
	}
	r := addReach(cmd)
	page := newChoice("healthz", "livez", "readyz")
	cmd.Flags().Var(page, "page", "health endpoint to query")
	ready := cmd.Flags().Bool("ready", false, "check whether this machine should get requests; the same as --page readyz")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *ready {
			if cmd.Flags().Changed("page") {
				return usage("--ready and --page exclude each other")
			}
			page.value = "readyz"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
		defer cancel()
		to, err := r.openHealth(ctx)
		if err != nil {
			return err
		}
		defer to.close()
		status, word, err := to.health(ctx, page.value)
		if err != nil {
			return err
		}
		fmt.Fprintln(screen{cmd.OutOrStdout()}, word)
		if status != http.StatusOK {
			return &exitError{code: exitInvalid}
		}
		return nil
	}
	return cmd
}

// openHealth is open for requests that need no rights: where the admin socket cannot be
// used, because the state directory is read-only or belongs to another user, it uses the
// listener. It sends no token, because the listener was not specified by the operator.
func (r *reach) openHealth(ctx context.Context) (*remote, error) {
	to, err := r.open(ctx)
	var other *otherHeadgate
	if err == nil || *r.admin != "" || errors.As(err, &other) {
		return to, err
	}
	address, config, failed := r.configured()
	if failed != nil || address == "" {
		return nil, err
	}
	if to, failed = r.openAddress(ctx, address, config, ""); failed != nil {
		return nil, err
	}
	return to, nil
}

// health reads a health page.
func (to *remote) health(ctx context.Context, page string) (status int, word string, err error) {
	rs, err := to.Send(ctx, http.MethodGet, "/"+page, nil, nil)
	if err != nil {
		return 0, "", err
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	return rs.StatusCode, strings.TrimSpace(string(body)), err
}
