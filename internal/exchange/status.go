package exchange

// Status returns the status that stands in logs and metrics: the one that was
// sent, or for a client that went away before anything was sent, 499.
func (ex *Exchange) Status() int {
	if !ex.Response.HeadSent && (ex.Reason == ClientClosed || ex.Reason == ClientTimeout) {
		return ex.Reason.Status()
	}
	return ex.Response.Status
}
