import type { Browser, Page } from 'playwright-core'
export type Headgate = { dir: string; config: string; port: number; url: string; log: string; process: { kill(signal: string): boolean }; start(): Promise<void>; stop(): Promise<void>; end(): Promise<void>; setupToken(): string }
export const flags: string[]
export function openBrowser(): Promise<Browser>
export function until<T>(what: string, condition: () => T | Promise<T>, deadline?: number): Promise<NonNullable<T>>
export function freePort(): Promise<number>
export function startHeadgate(text?: string): Promise<Headgate>
export function setUp(page: Page, h: Headgate, name?: string, password?: string): Promise<void>
export const binary: string
