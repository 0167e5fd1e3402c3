import { useSyncExternalStore } from 'react'

/** A value that components follow. */
export class Store<T> {
  private listeners = new Set<() => void>()
  constructor(private value: T) {}
  get = () => this.value
  set = (value: T) => {
    this.value = value
    this.listeners.forEach((tell) => tell())
  }
  subscribe = (tell: () => void) => {
    this.listeners.add(tell)
    return () => void this.listeners.delete(tell)
  }
}

export const useStore = <T>(store: Store<T>): T => useSyncExternalStore(store.subscribe, store.get)

/** What the browser keeps, where it may; elsewhere it lives as long as the page. */
const memory = new Map<string, string>()
export const kept = {
  get(key: string): string | null {
    try {
      return localStorage.getItem(key) ?? memory.get(key) ?? null
    } catch {
      return memory.get(key) ?? null
    }
  },
  set(key: string, value: string | null) {
    if (value === null) memory.delete(key)
    else memory.set(key, value)
    try {
      if (value === null) localStorage.removeItem(key)
      else localStorage.setItem(key, value)
    } catch {
      // the browser keeps nothing: memory has it
    }
  },
}
