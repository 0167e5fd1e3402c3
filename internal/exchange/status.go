package exchange

// Status returns the status for logs and metrics: the one that was sent, or 499 for a
// client that disconnected before anything was sent.
func (ex *Exchange) Status() int {
	if !ex.Response.HeadSent && (ex.Reason == ClientClosed || ex.Reason == ClientTimeout) {
		return ex.Reason.Status()
	}
	return ex.Response.Status
}
