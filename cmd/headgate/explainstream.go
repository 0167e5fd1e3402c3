package main

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/plan"
)

// isStream reports whether an argument of explain means a TCP or UDP proxy.
func isStream(address string) bool {
	return strings.HasPrefix(address, "tcp://") || strings.HasPrefix(address, "udp://")
}

// explainStream explains how a connection, or a session of datagrams, would be handled.
func explainStream(cmd *cobra.Command, address, from, file, output string, running *reach) error {
	q, err := plan.ParseStream(address, from)
	if err != nil {
		return usage("%v", err)
	}
	explain := func() (plan.StreamExplanation, error) { return explainDocumentsStream(cmd, file, q) }
	if running != nil {
		explain = func() (plan.StreamExplanation, error) {
			return explainRunningStream(cmd.Context(), running, address, from)
		}
	}
	e, err := explain()
	if err != nil {
		return err
	}
	if output == "json" {
		return writeJSON(cmd, e)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), e.Text())
	return err
}

// explainDocumentsStream explains a connection with configuration files.
func explainDocumentsStream(cmd *cobra.Command, file string, q plan.StreamQuestion) (plan.StreamExplanation, error) {
	_, documents, err := readDocuments(cmd, file)
	if err != nil {
		return plan.StreamExplanation{}, err
	}
	p, problems := loadPlan(documents, "")
	if len(problems) > 0 {
		return plan.StreamExplanation{}, printProblems(cmd, problems)
	}
	defer p.Retire(nil)
	e := p.ExplainStream(q)
	e.Notes = append(e.Notes, undiscovered(p)...)
	return e, nil
}

// explainRunningStream explains a connection with the running headgate.
func explainRunningStream(ctx context.Context, r *reach, address, from string) (e plan.StreamExplanation, err error) {
	to, err := r.open(ctx)
	if err != nil {
		return e, err
	}
	defer to.close()
	in := &client.ExplainStreamInput{Address: address, From: from}
	err = to.Do(ctx, http.MethodPost, "/explain/stream", in, &e)
	return e, err
}
