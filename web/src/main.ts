import './style.css';
import { Lab } from './lab/app.ts';
import { offline } from '#offline';

const lab = new Lab(document.getElementById('lab')!);
// Tests and consoles reach the laboratory here.
Object.assign(window, { lab });
void lab.begin();
offline();
