package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"headgate/internal/operator"
)

// backupTimeout is how long a client may take to read or to send an archive.
const backupTimeout = 10 * time.Minute

// backupInput is how an archive is made.
type backupInput struct {
	// Passphrase encrypts the archive. Without one, keep the archive as safe as the state
	// directory.
	Passphrase string `json:"passphrase,omitempty" writeonly:"true" max:"1024"`
}

// backup sends an archive. One that cannot be finished is cut off, and a restore refuses
// it then.
func (a *API) backup(c *call) error {
	if a.Backup == nil {
		return refuse(operator.CodeNotFound, "", "there is no state directory to back up", "")
	}
	why := "sealed"
	if c.in.(*backupInput).Passphrase == "" {
		why = "without a passphrase"
	}
	if err := a.Operators.Note(c.rq.Context(), c.who, "backup.create", "", why); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), backupTimeout)
	defer cancel()
	out := &archiveWriter{w: c.w, to: http.NewResponseController(c.w), media: c.row.media}
	err := a.Backup(ctx, out, c.in.(*backupInput).Passphrase)
	if err != nil && out.begun {
		a.Log.Error("a backup was cut off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// archiveWriter sends the head of the answer before the first bytes, and gives each
// write some time.
type archiveWriter struct {
	w     http.ResponseWriter
	to    *http.ResponseController
	media string
	begun bool
}

// Write sends a part of the archive.
func (a *archiveWriter) Write(p []byte) (int, error) {
	if err := a.to.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", a.media)
		a.w.Header().Set("Content-Disposition", `attachment; filename="headgate.backup"`)
	}
	return a.w.Write(p)
}
