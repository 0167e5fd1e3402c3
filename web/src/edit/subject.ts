import { createContext, useContext } from 'react'
import type { Value } from './object'

/** The object that a form edits: its kind, its name while it is saved, and its value. */
type Subject = { kind: string; saved?: string; value: Value }

const Context = createContext<Subject>({ kind: '', value: {} })

export const SubjectProvider = Context.Provider
export const useSubject = () => useContext(Context)
