// The entry: everything that makes a page of the console live and lets people act on it.
import { listen } from "./actions.js";
import { watchAlarmForms } from "./alarm-forms.js";
import { follow } from "./live.js";
import { watchFilters } from "./filters.js";
import { watchEdit } from "./task-edit.js";
import { watchForm } from "./task-form.js";
import { scrollToLatest } from "./scroll.js";

listen();
watchFilters();
watchForm();
watchEdit();
watchAlarmForms();
scrollToLatest();
follow();
