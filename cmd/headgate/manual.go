package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManual() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages",
		Hidden: true, // packages are made with it
		Long: `man writes a manual page for headgate and for each of its commands into a folder:
headgate.1, headgate-run.1, and so on. SOURCE_DATE_EPOCH is the date on the pages.`,
		Example: "  headgate man /usr/local/share/man/man1",
		Args:    arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		date := time.Now()
		if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
			date = time.Unix(epoch, 0)
		}
		var problem error
		eachCommand(cmd.Root(), func(c *cobra.Command) {
			if problem != nil || !c.IsAvailableCommand() && c.HasParent() {
				return
			}
			name := filepath.Join(args[0], strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
			problem = os.WriteFile(name, manual(c, date.UTC()), 0o644)
		})
		return problem
	}
	return cmd
}

// manual returns the manual page of a command, in the language of man(7).
func manual(c *cobra.Command, date time.Time) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 %q \"headgate %s\" \"User Commands\"\n", strings.ToUpper(name), date.Format("January 2006"), thisBuild().Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.ToLower(c.Short[:1])+c.Short[1:]))
	use := c.UseLine()
	if !c.HasParent() {
		use = "headgate COMMAND [flags]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(use))
	if text := strings.TrimSpace(c.Long); text != "" {
		b.WriteString(".SH DESCRIPTION\n")
		manualText(&b, text)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	manualFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	manualReferences(&b, c)
	return b.Bytes()
}

// manualText writes paragraphs. Those that are indented, such as tables, keep their lines.
func manualText(b *bytes.Buffer, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, "  ") {
			fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(paragraph))
			continue
		}
		b.WriteString(roff(paragraph) + "\n")
	}
}

func manualFlags(b *bytes.Buffer, heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(short+"--"+f.Name+" "+kind)), roff(usage))
	})
}

// manualReferences names the pages of the command's neighbors.
func manualReferences(b *bytes.Buffer, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			pages = append(pages, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), end)
	}
}

// roff returns text in which nothing is a command of man(7).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
