/** Opens the home of an account by its id. */
import { useState } from 'preact/hooks';
import { goTo } from '../navigation.js';

export function ReaderPicker() {
  const [id, setId] = useState('');
  const open = (event: Event): void => {
    event.preventDefault();
    if (id !== '') goTo({ page: 'home', account: id, cursor: undefined });
  };
  return (
    <form class="inline-form" onSubmit={open} aria-label="Pick a reader">
      <label>
        <span>Account id</span>
        <input
          value={id}
          required
          maxLength={128}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Open home</button>
    </form>
  );
}
