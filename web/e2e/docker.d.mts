export type Container = { name: string; labels: Record<string, string>; state?: string }
export function startDocker(containers: Container[]): Promise<{ endpoint: string; close(): void }>
