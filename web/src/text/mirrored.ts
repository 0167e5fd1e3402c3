/** The comparison of the responses of a mirror with those of the servers. */
export const mirrored = {
  title: 'Mirrored responses',
  counted: (time: string) => `Since ${time}, on this machine. Each request counts by its first difference.`,
  none: 'Nothing is compared yet.',
  servers: 'Servers',
  mirror: 'Mirror',
  side: 'Responses of',
  same: 'The same',
  kinds: { status: 'Status', body: 'Body', header: 'Header' } as Record<string, string>,
  incomplete: 'Cut off',
  skipped: 'Not compared',
  failed: 'No response',
  headers: 'Fields that differ',
  request: 'Request',
  times: 'Times',
  difference: 'Difference',
}
