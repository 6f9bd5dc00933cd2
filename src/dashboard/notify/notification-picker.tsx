/** Opens the story of a notification by its id, or the deliveries of a user. */
import { useState } from 'preact/hooks';
import { goTo } from '../navigation.js';
import { deliveriesRoute } from '../route.js';

export function NotificationPicker() {
  const [id, setId] = useState('');
  const [user, setUser] = useState('');
  return (
    <>
      <form
        class="inline-form"
        aria-label="Open a notification"
        onSubmit={(event) => {
          event.preventDefault();
          if (id.trim() !== '') goTo({ page: 'notification', id: id.trim() });
        }}
      >
        <label>
          <span>Notification id</span>
          <input
            value={id}
            required
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Open its story</button>
      </form>
      <form
        class="inline-form"
        aria-label="Find the deliveries of a user"
        onSubmit={(event) => {
          event.preventDefault();
          if (user !== '') goTo({ ...deliveriesRoute(), user });
        }}
      >
        <label>
          <span>User id</span>
          <input
            value={user}
            required
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setUser(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Show deliveries</button>
      </form>
    </>
  );
}
