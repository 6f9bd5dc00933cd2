/** The filter of a queue: metadata pairs, all of which must match. Each pair can be taken off by itself. */
import { useState } from 'preact/hooks';
import { announce } from '../announce.js';

export interface WhereFilterProps {
  readonly where: Readonly<Record<string, string>>;
  readonly onChange: (where: Readonly<Record<string, string>>) => void;
}

export function WhereFilter({ where, onChange }: WhereFilterProps) {
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const add = (event: Event): void => {
    event.preventDefault();
    if (key.trim() === '') return;
    onChange({ ...where, [key.trim()]: value });
    announce(`Filter: ${key.trim()} is ${value}`);
    setKey('');
    setValue('');
  };
  const remove = (name: string): void => {
    onChange(Object.fromEntries(Object.entries(where).filter(([other]) => other !== name)));
    announce(`Filter ${name} removed`);
  };
  return (
    <form class="inline-form" onSubmit={add} aria-label="Filter by metadata">
      <label>
        <span>Metadata key</span>
        <input
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <label>
        <span>equals</span>
        <input
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <button type="submit">Add filter</button>
      {Object.entries(where).map(([name, wanted]) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Remove filter ${name} = ${wanted}`}
          onClick={() => remove(name)}
        >
          {name} = {wanted} <span aria-hidden="true">×</span>
        </button>
      ))}
    </form>
  );
}
