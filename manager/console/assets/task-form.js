// Adding a task. (The form has a module of its own once there is one.)
export function watchForm() {}
