import type { AnyObject } from '@/api/queries'

export type StreamServer = { address?: string; weight?: number; backup?: boolean }
export const serversOf = (o: AnyObject) => (Array.isArray(o.servers) ? (o.servers as StreamServer[]) : [])
